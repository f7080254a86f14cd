// Lumino names this class when it is loaded; jsdom has none.
globalThis.DragEvent ??= class DragEvent extends MouseEvent {};
