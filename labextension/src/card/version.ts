/** The package's version; a test holds it equal to package.json and pyproject.toml. */
export const VERSION = '0.1.0';
