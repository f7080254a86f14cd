/** Which words of two lines differ, where one took the place of the other. */

/** A stretch of a line: its first character and the one after its last. */
export type Stretch = [from: number, to: number];

const WORD = /[\p{L}\p{N}_]+|\s+|[^]/gu;
/** Most words of a line that are compared one by one; the table grows with their square. */
const MOST = 160;
/** A longer line is not compared. */
const LONGEST = 4_000;
/** Less than this share in common: two lines that have nothing to do with each other. */
const ALIKE = 0.35;

/** What differs in `before` and in `after`; nothing where they are the same or too unlike for it to tell anything. */
export function changedWords(before: string, after: string): [Stretch[], Stretch[]] {
  if (before === after || before.length > LONGEST || after.length > LONGEST) {
    return [[], []];
  }
  const old = before.match(WORD) ?? [];
  const now = after.match(WORD) ?? [];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) {
    head++;
  }
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) {
    tail++;
  }
  const [keptOld, keptNow] = common(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  const inside = (isCommon: boolean[], words: string[]): boolean[] =>
    words.map((_, at) => at < head || at >= words.length - tail || isCommon[at - head]);
  const sameOld = inside(keptOld, old);
  const sameNow = inside(keptNow, now);
  const shared = old.reduce((sum, word, at) => sum + (sameOld[at] && word.trim() ? word.length : 0), 0);
  const longer = Math.max(before.replace(/\s/g, '').length, after.replace(/\s/g, '').length);
  return shared < ALIKE * longer ? [[], []] : [stretches(old, sameOld), stretches(now, sameNow)];
}

/** For each word of both lists whether it is part of their longest common sequence. */
function common(old: string[], now: string[]): [boolean[], boolean[]] {
  const keptOld = old.map(() => false);
  const keptNow = now.map(() => false);
  if (!old.length || !now.length || old.length > MOST || now.length > MOST) {
    return [keptOld, keptNow];
  }
  const wide = now.length + 1;
  const best = new Uint16Array((old.length + 1) * wide);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const at = i * wide + j;
      best[at] = old[i] === now[j] ? best[at + wide + 1] + 1 : Math.max(best[at + wide], best[at + 1]);
    }
  }
  for (let i = 0, j = 0; i < old.length && j < now.length; ) {
    if (old[i] === now[j]) {
      keptOld[i++] = keptNow[j++] = true;
    } else if (best[(i + 1) * wide + j] >= best[i * wide + j + 1]) {
      i++;
    } else {
      j++;
    }
  }
  return [keptOld, keptNow];
}

/** The words that are not kept, neighbours together; a single blank between two of them goes along. */
function stretches(words: string[], isCommon: boolean[]): Stretch[] {
  const ranges: Stretch[] = [];
  let at = 0;
  words.forEach((word, index) => {
    const last = ranges[ranges.length - 1];
    const between = isCommon[index] && !word.trim() && index > 0 && !isCommon[index - 1] && isCommon[index + 1] === false;
    if (!isCommon[index] || between) {
      if (last?.[1] === at) {
        last[1] = at + word.length;
      } else {
        ranges.push([at, at + word.length]);
      }
    }
    at += word.length;
  });
  return ranges;
}
