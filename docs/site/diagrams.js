// Draws the page's diagrams in the colours that the page has when it opens.
const theme = document.body.dataset.theme;
const dark = theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
mermaid.initialize({ startOnLoad: true, theme: dark ? "dark" : "default" });
