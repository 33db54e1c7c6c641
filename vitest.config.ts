import { defineConfig } from 'vitest/config'

/** Quick by default; crash, race, fuzz and browser with COUNTERSIGN_TESTS=long. */
const long = process.env.COUNTERSIGN_TESTS === 'long'

export default defineConfig({
  test: {
    include: [long ? '**/*.long.test.ts' : '**/*.test.{ts,tsx}'],
    exclude: ['**/node_modules/**', '**/dist/**', ...(long ? [] : ['**/*.long.test.ts'])],
    globalSetup: ['server/test/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // Three times and more what the slowest test takes, so that only one that hangs is given up.
    testTimeout: long ? 900_000 : 120_000,
    // What is waited for comes at once, except on a machine that is busy with something else.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: long ? 300_000 : 120_000,
  },
})
