/**
 * The embedded chain runs in one process: the one that holds its lock. The others reach it over that process's RPC, and
 * one of them takes over when the owner is gone. The journal's epoch keeps a former owner from writing.
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
  /** False for a process that does not listen: the others could not reach the chain there. */
  mayOwn: boolean
}

export type SharedChain = {
  request: ChainRequest
  mint(to: Hex, amountMicro: bigint): Promise<Hex>
  isOwner(): boolean
  /** Publishes the URL of this process, once it listens, for the other processes. */
  announce(url: string): Promise<void>
  close(): Promise<void>
}

const LOCK = `hashtextextended('countersign/embedded-chain', 0)`

export async function createSharedChain({ pool, connect, clock, log, mayOwn }: Deps): Promise<SharedChain> {
  let embedded: EmbeddedChain | undefined
  let lockConnection: pg.Client | undefined
  let ownUrl: string | undefined
  let closed = false

  let takeOverInProgress: Promise<boolean> | undefined
  /** Concurrent requests that find the owner gone share one attempt to take over. */
  const takeOver = (): Promise<boolean> => {
    if (!mayOwn || closed) return Promise.resolve(false)
    takeOverInProgress ??= tryTakeOver().finally(() => {
      takeOverInProgress = undefined
    })
    return takeOverInProgress
  }

  /** The lock is held on a dedicated connection: when that closes, this process no longer owns the chain. */
  const tryTakeOver = async (): Promise<boolean> => {
    const client = await connect()
    try {
      return await takeOverWith(client)
    } catch (error) {
      // A process that cannot build the chain must not keep the others from it.
      if (lockConnection === client) lockConnection = undefined
      await client.end().catch(() => {})
      throw error
    }
  }

  const takeOverWith = async (client: pg.Client): Promise<boolean> => {
    const { rows } = await client.query<{ acquired: boolean }>(`select pg_try_advisory_lock(${LOCK}) as acquired`)
    if (!rows[0]!.acquired || closed) {
      await client.end()
      return false
    }
    client.on('error', () => client.end().catch(() => {}))
    client.on('end', () => {
      if (lockConnection !== client) return
      lockConnection = undefined
      const lostChain = embedded
      embedded = undefined
      lostChain?.close().catch(() => {})
    })
    lockConnection = client
    const chain = await createEmbeddedChain({ journal: createPostgresJournal(pool), clock, log })
    if (lockConnection !== client) {
      // The lock was lost meanwhile, or this process is being closed.
      await chain.close()
      await client.end().catch(() => {})
      return false
    }
    embedded = chain
    if (ownUrl) await writeOwnerUrl(ownUrl)
    log.info({}, 'this process owns the embedded chain')
    return true
  }

  const writeOwnerUrl = (url: string) =>
    pool.query('insert into embedded_chain_owner (id, url) values (1, $1) on conflict (id) do update set url = $1', [
      url,
    ])

  const readOwnerUrl = async (): Promise<string> => {
    const { rows } = await pool.query<{ url: string }>('select url from embedded_chain_owner where id = 1')
    if (!rows[0]) throw new ChainUnreachable('No process has announced the embedded chain yet.')
    return rows[0].url
  }

  /** Calls the owner; when it cannot be reached and its lock is free, takes the chain over. */
  const callOwner = async <T>(
    onRemote: (url: string) => Promise<T>,
    onEmbedded: (chain: EmbeddedChain) => Promise<T>,
  ): Promise<T> => {
    try {
      const url = await readOwnerUrl()
      // This process was the last owner and has lost its lock: a request to itself would recurse.
      if (url === ownUrl) throw new ChainUnreachable('The next owner of the embedded chain is not known yet.')
      return await onRemote(url)
    } catch (error) {
      if (!(error instanceof ChainUnreachable)) throw error
      if (await takeOver().catch(() => false)) return onEmbedded(embedded!)
      throw error
    }
  }

  const callChain = <T>(
    onEmbedded: (chain: EmbeddedChain) => Promise<T>,
    onRemote: (url: string) => Promise<T>,
  ): Promise<T> => {
    if (closed) throw new ChainUnreachable('The embedded chain is closed.')
    return embedded ? onEmbedded(embedded) : callOwner(onRemote, onEmbedded)
  }

  await takeOver()

  return {
    isOwner: () => embedded !== undefined,
    request: async (method, params) =>
      callChain(
        (chain) => chain.request(method, params),
        (url) => createRemoteChain({ url: `${url}/api/dev/rpc` }).request(method, params),
      ),
    mint: async (to, amountMicro) =>
      callChain(
        (chain) => chain.mint(to, amountMicro),
        (url) => remoteMint(url, to, amountMicro),
      ),
    async announce(url) {
      ownUrl = url
      if (embedded) await writeOwnerUrl(url)
    },
    async close() {
      closed = true
      const client = lockConnection
      lockConnection = undefined
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
    throw new ChainUnreachable('The owner of the embedded chain did not respond.', { cause })
  })
  if (!response.ok) throw new ChainUnreachable(`The owner of the embedded chain answered ${response.status}.`)
  return ((await response.json()) as { transaction: Hex }).transaction
}
