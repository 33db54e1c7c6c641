import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { startWorld } from '../../server/test/money/world.ts'
import { type ClientOptions, createClient, createDevelopmentAccount, type PayingAccount } from '../src/client.ts'
import { type Fault, type ProxiedRequest, startFaultProxy } from './fault-proxy.ts'

export const REQUEST = { task: 'Say hello.', agent_id: 'comedian-v1' }
export const PRICE = 10_000n

/** A real service with a proxy in front that loses answers, and payers who count what they sign. */
export async function startPayingWorld() {
  const world = await startWorld()
  const proxy = await startFaultProxy(world.url)
  const folders: string[] = []
  const fund = (account: { address: string }, micro: bigint) =>
    world.post('/api/dev/faucet', { address: account.address, amount_usdc: Number(micro) / 1_000_000 })

  return {
    world,
    proxy,
    fund,
    temporaryFolder() {
      const folder = mkdtempSync(join(tmpdir(), 'countersign-calls-'))
      folders.push(folder)
      return folder
    },
    async startPayer(micro = 1_000_000n) {
      const account = await createDevelopmentAccount()
      if (micro > 0n) await fund(account, micro)
      let signatures = 0
      const counting: PayingAccount = {
        address: account.address,
        signTypedData: (message) => {
          signatures += 1
          return account.signTypedData(message)
        },
      }
      return {
        address: account.address,
        signatures: () => signatures,
        spent: async () => micro - (await world.balance(account.address)),
        createClient: (options: Partial<ClientOptions> = {}) =>
          createClient({ baseUrl: proxy.url, account: counting, allowDevelopmentChain: true, ...options }),
      }
    },
    async close() {
      await proxy.close()
      await world.close()
      for (const folder of folders) rmSync(folder, { recursive: true, force: true })
    },
  }
}

export type PayingWorld = Awaited<ReturnType<typeof startPayingWorld>>

/** The fault for the first paid requests; later ones pass. */
export const firstPaid = (fault: Fault, count = 1) => {
  let seen = 0
  return ({ paid }: ProxiedRequest): Fault => (paid && seen++ < count ? fault : 'none')
}

/** The error of a call that must fail. */
export const reject = async (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => expect.unreachable('The call should fail.'),
    (error: unknown) => error,
  )

/** Changes the terms in the header of a 402. */
export const changeTerms =
  (change: Record<string, unknown>) =>
  (body: string, headers: Record<string, unknown>): string => {
    const challenge = JSON.parse(Buffer.from(String(headers['payment-required']), 'base64').toString())
    challenge.accepts = challenge.accepts.map((terms: object) => ({ ...terms, ...change }))
    headers['payment-required'] = Buffer.from(JSON.stringify(challenge)).toString('base64')
    return body
  }
