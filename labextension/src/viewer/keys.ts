/** The viewer's keys, as in `less` and in browsers. */

/** What keys do. */
export interface KeyActions {
  find(): void;
  /** To the next or the one before; to be ignored while nothing is searched. */
  hit(direction: 1 | -1): void;
  closeFind(): void;
  line(): void;
  start(): void;
  end(): void;
}

/** Does what the key stands for, if it stands for something; `finding`: the search is open. */
export function handleKey(event: KeyboardEvent, finding: boolean, actions: KeyActions): void {
  const action = actionOf(event, finding, actions);
  if (action) {
    event.preventDefault();
    event.stopPropagation();
    action();
  }
}

function actionOf(event: KeyboardEvent, finding: boolean, actions: KeyActions): (() => void) | undefined {
  const { key } = event;
  if (finding && key === 'Escape') {
    return () => actions.closeFind();
  }
  if (finding && key === 'F3') {
    return () => actions.hit(event.shiftKey ? -1 : 1);
  }
  const ends = { Home: () => actions.start(), End: () => actions.end() };
  let known: Record<string, () => void> = {};
  if (event.ctrlKey || event.metaKey) {
    known = { f: () => actions.find(), ...ends };
  } else if ((event.target as HTMLElement).tagName !== 'INPUT' && !event.altKey) {
    known = { g: () => actions.line(), '/': () => actions.find(), n: () => actions.hit(1), N: () => actions.hit(-1), ...ends };
  }
  return Object.hasOwn(known, key) ? known[key] : undefined;
}
