import { defineConfig } from 'vitest/config'

// Only tests that need no database, so that a mutant is tried within a second.
export default defineConfig({
  test: {
    include: [
      'proof/src/**/*.test.ts',
      'server/src/platform/money.test.ts',
      'server/src/modules/ledger/amounts.test.ts',
      'server/src/modules/tenants/api-key.test.ts',
      'server/test/governance/policy-evaluation.test.ts',
    ],
    // `proof.test.ts` reads the sources, which are instrumented here.
    exclude: ['**/node_modules/**', '**/*.long.test.ts', 'proof/src/proof.test.ts'],
    pool: 'threads',
    maxWorkers: 1,
    testTimeout: 30_000,
  },
})
