/**
 * Draws cards when they come near what is seen. A notebook may hold a thousand of them; drawn at once, they would keep
 * the page from opening. Until then a card's plain text stands in its place, about as high, and is found by a search.
 */

/** How far from what is seen something is drawn. */
const MARGIN = '1200px 0px';
/** So many in a burst are drawn at once: what a person has just run must not flicker (JupyterLab shows 50 outputs of a cell). */
const AT_ONCE = 60;
/** A burst ends when nothing came for so long, in milliseconds. */
const PAUSE_MS = 500;
/** How long drawing for a search may take before the page may do something else, in milliseconds. */
const SLICE_MS = 12;

const waiting = new Map<Element, () => void>();
let observer: IntersectionObserver | undefined;
let burst = 0;
let last = 0;

/** Calls `draw` when `node` comes near what is seen; at once where few come, or nobody can tell. */
export function drawNearby(node: HTMLElement, text: string, draw: () => void): void {
  const now = performance.now();
  burst = now - last > PAUSE_MS ? 0 : burst + 1;
  last = now;
  if (burst < AT_ONCE || typeof IntersectionObserver === 'undefined') {
    forget(node);
    draw();
    return;
  }
  observer ??= watch();
  const stand = document.createElement('pre');
  stand.className = 'oc-later';
  stand.textContent = text;
  node.replaceChildren(stand);
  waiting.set(node, draw);
  observer.observe(node);
}

/** `node` is gone, or drawn by somebody else. */
export function forget(node: Element): void {
  if (waiting.delete(node)) {
    observer?.unobserve(node);
  }
}

function drawNow(node: Element): void {
  const draw = waiting.get(node);
  forget(node);
  draw?.();
}

function watch(): IntersectionObserver {
  // a search or a printer wants them all
  window.addEventListener('beforeprint', () => [...waiting.keys()].forEach(drawNow));
  document.addEventListener(
    'keydown',
    ({ key, ctrlKey, metaKey }) => {
      if (key === 'F3' || ((ctrlKey || metaKey) && (key === 'f' || key === 'g'))) {
        drawSome();
      }
    },
    true
  );
  return new IntersectionObserver(
    entries => entries.forEach(({ target, isIntersecting }) => isIntersecting && drawNow(target)),
    { rootMargin: MARGIN }
  );
}

/** All that wait, a little at a time. */
function drawSome(): void {
  const end = performance.now() + SLICE_MS;
  for (const node of waiting.keys()) {
    drawNow(node);
    if (performance.now() > end) {
      setTimeout(drawSome);
      return;
    }
  }
}
