declare module '*.css' {
  /** The style sheet's text. */
  const text: string;
  export default text;
}

declare module '*.md' {
  /** The page's text. */
  const text: string;
  export default text;
}
