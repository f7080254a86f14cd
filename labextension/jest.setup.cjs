// Lumino names this class when it is loaded; jsdom has none.
globalThis.DragEvent ??= class DragEvent extends MouseEvent {};
// JupyterLab's components ask for it when they are loaded; jsdom has none.
globalThis.matchMedia ??= () => ({ matches: false, addEventListener() {}, removeEventListener() {}, addListener() {} });
// JupyterLab's React widgets use it; jsdom has none.
globalThis.requestIdleCallback ??= callback => setTimeout(callback);
globalThis.cancelIdleCallback ??= clearTimeout;
