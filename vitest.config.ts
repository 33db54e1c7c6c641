import { defineConfig } from 'vitest/config'

/** Quick by default; `long` (crash, race, fuzz, browser) and `soak` (minutes for one guarantee) by COUNTERSIGN_TESTS. */
const suite = process.env.COUNTERSIGN_TESTS
const slow = suite === 'long' || suite === 'soak'

export default defineConfig({
  test: {
    include: [slow ? `**/*.${suite}.test.ts` : '**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**', ...(slow ? [] : ['**/*.long.test.ts', '**/*.soak.test.ts'])],
    globalSetup: ['server/test/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: slow ? 300_000 : 30_000,
    // What is waited for comes at once, except on a machine that is busy with something else.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: slow ? 180_000 : 60_000,
  },
})
