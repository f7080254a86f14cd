declare module '*.css' {
  /** The style sheet's text. */
  const text: string;
  export default text;
}
