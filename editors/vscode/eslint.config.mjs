import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', 'out/', 'node_modules/', 'test/', 'scripts/', '*.mjs'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'max-lines': ['error', 400],
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      'no-restricted-imports': 'off',
    },
  },
  {
    // The core knows no editor, so that it is tried without one.
    files: ['src/core/**'],
    rules: { 'no-restricted-imports': ['error', { patterns: ['vscode', 'vscode-languageclient*'] }] },
  },
  {
    files: ['unit/**'],
    rules: {
      // `test` of node:test returns a promise that its runner awaits.
      '@typescript-eslint/no-floating-promises': 'off',
      'max-lines-per-function': 'off',
    },
  },
);
