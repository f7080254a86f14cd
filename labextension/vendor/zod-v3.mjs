export * from 'zod/v3';
export { default } from 'zod/v3';
