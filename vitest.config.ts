import { defineConfig } from 'vitest/config'

/** Quick by default; crash, race, fuzz and browser with COUNTERSIGN_TESTS=long. */
const long = process.env.COUNTERSIGN_TESTS === 'long'

const exclude = ['**/node_modules/**', '**/dist/**', ...(long ? [] : ['**/*.long.test.ts'])]
const include = (folders: string) => [`${folders}/**/*${long ? '.long' : ''}.test.{ts,tsx}`]

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    // Three times and more what the slowest test takes, so that only one that hangs is given up.
    testTimeout: long ? 900_000 : 120_000,
    // What is waited for comes at once, except on a machine that is busy with something else.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: long ? 300_000 : 120_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'node',
          include: include('{cli,proof,scripts,sdk,server,web/test}'),
          exclude,
          globalSetup: ['server/test/global-setup.ts'],
          setupFiles: ['server/test/setup.ts'],
          // Loading the service took more than a quarter of the time of the quick tests. One process loads it once for all
          // files that it runs, so a test leaves nothing behind in what modules keep. A long test mostly starts services.
          isolate: long,
          // Node loads these files as it does in production, and keeps what it compiled for the next test file.
          experimental: { viteModuleRunner: false },
        },
      },
      // The pages are TSX, which Node does not load.
      { extends: true, test: { name: 'pages', include: include('web/src'), exclude } },
    ],
  },
})
