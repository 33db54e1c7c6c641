/**
 * The embedded chain lives in one process. Whoever gets its lock owns it; the others reach it over that process's RPC,
 * and one of them takes over when the owner is gone. The journal fences: an old owner can write nothing any more.
 */
import type pg from 'pg'
import type { Hex } from '../../modules/payments/facilitator.ts'
import type { Clock } from '../../platform/clock.ts'
import { type ChainLog, createEmbeddedChain, type EmbeddedChain } from './embedded-chain.ts'
import { createPostgresJournal } from './journal.ts'
import { createRemoteChain } from './remote-chain.ts'
import { type ChainRequest, ChainUnreachable } from './rpc.ts'

type Deps = {
  pool: pg.Pool
  connect(): Promise<pg.Client>
  clock: Clock
  log: ChainLog
  /** False for a process that does not listen: nobody could reach the chain there. */
  mayOwn: boolean
}

export type SharedChain = {
  request: ChainRequest
  mint(to: Hex, amountMicro: bigint): Promise<Hex>
  owned(): boolean
  /** Tells the other processes where to reach the chain, once we listen. */
  announce(url: string): Promise<void>
  close(): Promise<void>
}

const LOCK = `hashtextextended('countersign/embedded-chain', 0)`

export async function createSharedChain({ pool, connect, clock, log, mayOwn }: Deps): Promise<SharedChain> {
  let embedded: EmbeddedChain | undefined
  let guard: pg.Client | undefined
  let ownUrl: string | undefined
  let closed = false

  let takingOver: Promise<boolean> | undefined
  /** However many requests find the owner gone, one of them looks after it. */
  const takeOver = (): Promise<boolean> => {
    if (!mayOwn || closed) return Promise.resolve(false)
    takingOver ??= tryLock().finally(() => {
      takingOver = undefined
    })
    return takingOver
  }

  /** The lock lives on a connection of its own: when that is lost, so is the right to the chain. */
  const tryLock = async (): Promise<boolean> => {
    const client = await connect()
    const { rows } = await client.query<{ got: boolean }>(`select pg_try_advisory_lock(${LOCK}) as got`)
    if (!rows[0]!.got || closed) {
      await client.end()
      return false
    }
    client.on('error', () => client.end().catch(() => {}))
    client.on('end', () => {
      if (guard !== client) return
      guard = undefined
      const lost = embedded
      embedded = undefined
      lost?.close().catch(() => {})
    })
    guard = client
    embedded = await createEmbeddedChain({ journal: createPostgresJournal(pool), clock, log })
    if (ownUrl) await writeUrl(ownUrl)
    log.info({}, 'this process owns the embedded chain')
    return true
  }

  const writeUrl = (url: string) =>
    pool.query('insert into embedded_chain_owner (id, url) values (1, $1) on conflict (id) do update set url = $1', [
      url,
    ])

  const ownerUrl = async (): Promise<string> => {
    const { rows } = await pool.query<{ url: string }>('select url from embedded_chain_owner where id = 1')
    if (!rows[0]) throw new ChainUnreachable('Nobody has announced the embedded chain yet.')
    return rows[0].url
  }

  /** One owner is always found: either it answers, or its lock is free and we become it. */
  const elsewhere = async <T>(
    ask: (url: string) => Promise<T>,
    here: (chain: EmbeddedChain) => Promise<T>,
  ): Promise<T> => {
    try {
      const url = await ownerUrl()
      // The last owner was this very process, and it has lost its lock: asking itself would never end.
      if (url === ownUrl) throw new ChainUnreachable('The next owner of the embedded chain is not known yet.')
      return await ask(url)
    } catch (error) {
      if (!(error instanceof ChainUnreachable)) throw error
      if (await takeOver().catch(() => false)) return here(embedded!)
      throw error
    }
  }

  const use = <T>(here: (chain: EmbeddedChain) => Promise<T>, ask: (url: string) => Promise<T>): Promise<T> => {
    if (closed) throw new ChainUnreachable('The embedded chain is closed.')
    return embedded ? here(embedded) : elsewhere(ask, here)
  }

  await takeOver()

  return {
    owned: () => embedded !== undefined,
    request: async (method, params) =>
      use(
        (chain) => chain.request(method, params),
        (url) => createRemoteChain({ url: `${url}/api/dev/rpc` }).request(method, params),
      ),
    mint: async (to, amountMicro) =>
      use(
        (chain) => chain.mint(to, amountMicro),
        (url) => remoteMint(url, to, amountMicro),
      ),
    async announce(url) {
      ownUrl = url
      if (embedded) await writeUrl(url)
    },
    async close() {
      closed = true
      const client = guard
      guard = undefined
      await embedded?.close()
      await client?.end()
    },
  }
}

async function remoteMint(url: string, to: Hex, amountMicro: bigint): Promise<Hex> {
  const amount_usdc = Number(amountMicro) / 1e6
  const response = await fetch(`${url}/api/dev/faucet`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ address: to, amount_usdc }),
    signal: AbortSignal.timeout(10_000),
  }).catch((cause) => {
    throw new ChainUnreachable('The owner of the embedded chain gave no answer.', { cause })
  })
  if (!response.ok) throw new ChainUnreachable(`The owner of the embedded chain answered ${response.status}.`)
  return ((await response.json()) as { transaction: Hex }).transaction
}
