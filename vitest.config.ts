import { defineConfig } from 'vitest/config'

const long = process.env.COUNTERSIGN_TESTS === 'long'

export default defineConfig({
  test: {
    include: long ? ['**/*.long.test.ts'] : ['**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**', ...(long ? [] : ['**/*.long.test.ts'])],
    globalSetup: ['server/test/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: long ? 600_000 : 30_000,
    hookTimeout: 60_000,
  },
})
