// TypeScript to JavaScript, line by line, as Bun does it: imports that are only types are left out, enums and parameter
// properties work. Node.js's own type stripping does none of that.
export { transform } from 'sucrase';
