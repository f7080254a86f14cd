module.exports = {
  testEnvironment: 'jsdom',
  roots: ['<rootDir>/src'],
  testMatch: ['**/__tests__/*.test.ts'],
  setupFiles: ['<rootDir>/jest.setup.cjs'],
  transform: { '\\.(ts|css|svg|m?js)$': '<rootDir>/jest.transform.cjs' },
  // some of Lumino's packages are ES modules
  transformIgnorePatterns: ['/node_modules/(?!@lumino|@jupyterlab|@jupyter|y-protocols|yjs|lib0)']
};
