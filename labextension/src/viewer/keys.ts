/** The viewer's keys, as in `less` and in browsers. */

/** What keys do. */
export interface KeyActs {
  find(): void;
  /** To the next or the one before; to be ignored while nothing is searched. */
  hit(direction: 1 | -1): void;
  closeFind(): void;
  line(): void;
  start(): void;
  end(): void;
}

/** Does what the key stands for, if it stands for something; `finding`: the search is open. */
export function press(event: KeyboardEvent, finding: boolean, acts: KeyActs): void {
  const act = meaning(event, finding, acts);
  if (act) {
    event.preventDefault();
    event.stopPropagation();
    act();
  }
}

function meaning(event: KeyboardEvent, finding: boolean, acts: KeyActs): (() => void) | undefined {
  const { key } = event;
  if (finding && key === 'Escape') {
    return () => acts.closeFind();
  }
  if (finding && key === 'F3') {
    return () => acts.hit(event.shiftKey ? -1 : 1);
  }
  const ends = { Home: () => acts.start(), End: () => acts.end() };
  let known: Record<string, () => void> = {};
  if (event.ctrlKey || event.metaKey) {
    known = { f: () => acts.find(), ...ends };
  } else if ((event.target as HTMLElement).tagName !== 'INPUT' && !event.altKey) {
    known = { g: () => acts.line(), '/': () => acts.find(), n: () => acts.hit(1), N: () => acts.hit(-1), ...ends };
  }
  return Object.hasOwn(known, key) ? known[key] : undefined;
}
