import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'
import { INSTALL_LIMIT_MS, installPackages, readResult } from '../install-packages.ts'
import { clients, type ForeignSoftware, sellers } from './packages.ts'
import { noteRan } from './ran.ts'

/**
 * Some of the packages take minutes and a gigabyte to install: `npm run test:soak -- other-software` runs all of them, this
 * suite those that are small.
 */
const small = ['@dexterai/x402', '@faremeter/fetch']
const isChosen = ({ name }: ForeignSoftware) =>
  process.env.OTHER_SOFTWARE === 'all' || small.some((prefix) => name.startsWith(prefix))

/** Lines that say nothing about us. */
const explained = [
  // A native module was not built, because install scripts do not run here; it has a fallback.
  /bigint: Failed to load bindings/,
  // Of Node itself, about how these packages are written.
  /\(node:\d+\) (\[DEP\d+\]|ExperimentalWarning)/,
  /Use `node --trace-(deprecation|warnings)/,
]
const findUnexplained = (text: string) =>
  text.split('\n').filter((line) => line.trim() !== '' && !explained.some((pattern) => pattern.test(line)))

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service?.close())

const PRICE = 10_000n
const LIMIT = { timeout: INSTALL_LIMIT_MS + 120_000 }

test.for(clients.filter(isChosen))('$name pays for a run, once', LIMIT, async ({ name, packages, script }) => {
  const installed = await installPackages(packages)
  try {
    const key = generatePrivateKey()
    const { address } = privateKeyToAccount(key)
    expect((await service.post('/api/dev/faucet', { address, amount_usdc: 1 })).status).toBe(200)
    const output = await installed.script(script, { URL: service.url, KEY: key })
    const { status, body } = readResult(output)
    expect(status, JSON.stringify(body).slice(0, 500)).toBe(200)
    expect(body).toMatchObject({ status: 'completed', settlement: { status: 'settled' } })
    expect(1_000_000n - (await service.balance(address))).toBe(PRICE)
    expect(findUnexplained(output.stderr)).toEqual([])
    noteRan(name)
  } finally {
    installed.remove()
  }
})

test.for(sellers.filter(isChosen))('$name is paid', LIMIT, async ({ name, packages, script }) => {
  const installed = await installPackages(packages)
  try {
    const key = generatePrivateKey()
    const { address } = privateKeyToAccount(key)
    const payTo = privateKeyToAccount(generatePrivateKey()).address
    await service.post('/api/dev/faucet', { address, amount_usdc: 1 })
    const output = await installed.script(script, { URL: service.url, KEY: key, PAY_TO: payTo })
    expect(readResult(output)).toMatchObject({ status: 200, body: { joke: expect.any(String) } })
    expect(await service.balance(payTo)).toBe(20_000n)
    expect(findUnexplained(output.stderr)).toEqual([])
    noteRan(name)
  } finally {
    installed.remove()
  }
})
