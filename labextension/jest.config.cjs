module.exports = {
  testEnvironment: 'jsdom',
  roots: ['<rootDir>/src'],
  testMatch: ['**/__tests__/*.test.ts?(x)'],
  setupFiles: ['<rootDir>/jest.setup.cjs'],
  transform: { '\\.(tsx?|css|svg|md|m?js)$': '<rootDir>/jest.transform.cjs' },
  // some packages of JupyterLab and Lumino are ES modules
  transformIgnorePatterns: ['/node_modules/(?!@lumino|@jupyterlab|@jupyter|@microsoft|exenv-es6|y-protocols|yjs|lib0)']
};
