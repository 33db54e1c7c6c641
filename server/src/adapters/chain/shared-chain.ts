/**
 * The embedded chain runs in one process: the holder of its lease. The others reach it over that process's RPC, and one of
 * them takes over when the holder is dead (see `platform/instances.ts`). The journal's epoch keeps a former holder from
 * writing, and a process that may be thought dead reads the lease before it answers.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Hex } from '../../modules/payments/facilitator.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Instances } from '../../platform/instances.ts'
import { within } from '../../platform/within.ts'
import { type ChainLog, createEmbeddedChain, type EmbeddedChain } from './embedded-chain.ts'
import { createPostgresJournal } from './journal.ts'
import { createRemoteChain } from './remote-chain.ts'
import { type ChainRequest, ChainUnreachable } from './rpc.ts'

type Deps = {
  pool: pg.Pool
  connect(): Promise<pg.Client>
  instances: Pick<Instances, 'id' | 'findDead' | 'isSeenAlive' | 'isCertainlyAlive'>
  clock: Clock
  log: ChainLog
  /** False for a process that does not listen: the others could not reach the chain there. */
  mayOwn: boolean
}

export type SharedChain = {
  request: ChainRequest
  mint(to: Hex, amountMicro: bigint): Promise<Hex>
  isOwner(): boolean
  /** The process that holds the lease, dead or alive. */
  findHolder(): Promise<string[]>
  /** Publishes the URL of this process, once it listens, for the other processes. */
  announce(url: string): Promise<void>
  close(): Promise<void>
}

// Until the release after this one: the owner also holds the lock by which a process of the release before owns the chain.
const LOCK = `hashtextextended('countersign/embedded-chain', 0)`
/** How long a start waits for a silent owner to answer, or to be dead. */
const START_WAIT_MS = 20_000
const START_RETRY_MS = 200
const START_PROBE_MS = 1_000

export async function createSharedChain({ pool, connect, instances, clock, log, mayOwn }: Deps): Promise<SharedChain> {
  let embedded: EmbeddedChain | undefined
  let lockConnection: pg.Client | undefined
  let ownUrl: string | undefined
  let closed = false

  let takeOverInProgress: Promise<boolean> | undefined
  /** Concurrent requests that find the owner gone share one attempt to take over. */
  const takeOver = (isUnreachable: boolean): Promise<boolean> => {
    if (!mayOwn || closed) return Promise.resolve(false)
    takeOverInProgress ??= tryTakeOver(isUnreachable).finally(() => {
      takeOverInProgress = undefined
    })
    return takeOverInProgress
  }

  const tryTakeOver = async (isUnreachable: boolean): Promise<boolean> => {
    if (embedded) return true
    if (!instances.isCertainlyAlive()) return false
    const holder = (await readOwner())?.holder ?? null
    const isFree = holder === null || holder === instances.id
    if (!isFree && (await instances.findDead([holder])).length === 0) return false
    const client = await connect()
    try {
      const { rows } = await client.query<{ acquired: boolean }>(`select pg_try_advisory_lock(${LOCK}) as acquired`)
      const hasLock = rows[0]!.acquired
      // A dead holder that does not answer may keep its lock: its machine is gone or the process is stopped.
      if ((hasLock || (!isFree && isUnreachable)) && !closed && (await takeLease(holder))) {
        if (hasLock) watchLock(client)
        else await client.end()
        return await openEmbedded()
      }
      await client.end()
      return false
    } catch (error) {
      // A process that cannot build the chain must not keep the others from it.
      await stepDown()
      await client.end().catch(() => {})
      await releaseLease().catch(() => {})
      throw error
    }
  }

  /** Of several processes that find the same holder dead, one gets the lease. */
  const takeLease = async (before: string | null): Promise<boolean> => {
    const { rows } = await pool.query(
      `insert into embedded_chain_owner (id, url, holder) values (1, '', $1)
       on conflict (id) do update set holder = $1 where embedded_chain_owner.holder is not distinct from $2 returning 1`,
      [instances.id, before],
    )
    return rows.length === 1
  }

  const releaseLease = () =>
    pool.query('update embedded_chain_owner set holder = null where holder = $1', [instances.id])

  const watchLock = (client: pg.Client) => {
    lockConnection = client
    client.on('error', () => client.end().catch(() => {}))
    client.on('end', () => {
      if (lockConnection === client) stepDown().catch(() => {})
    })
  }

  const openEmbedded = async (): Promise<boolean> => {
    const client = lockConnection
    const chain = await createEmbeddedChain({ journal: createPostgresJournal(pool, instances.id), clock, log })
    if (closed || lockConnection !== client) {
      // The lock was lost meanwhile, or this process is being closed.
      await chain.close()
      await stepDown()
      return false
    }
    embedded = chain
    if (ownUrl) await writeOwnerUrl(ownUrl)
    log.info({}, 'this process owns the embedded chain')
    return true
  }

  const stepDown = async () => {
    const client = lockConnection
    const lostChain = embedded
    lockConnection = undefined
    embedded = undefined
    await client?.end().catch(() => {})
    await lostChain?.close()
  }

  const isCertainlyOwner = () => embedded !== undefined && instances.isCertainlyAlive() && !embedded.isTakenOver()

  /** The chain of this process. When others may think this process dead, the lease is read first. */
  const findOwnChain = async (): Promise<EmbeddedChain | undefined> => {
    if (!embedded || isCertainlyOwner()) return embedded
    if (!embedded.isTakenOver() && (await readOwner())?.holder === instances.id) return embedded
    log.warn({}, 'another process has taken the embedded chain over')
    stepDown().catch(() => {})
    return undefined
  }

  const writeOwnerUrl = (url: string) =>
    pool.query('update embedded_chain_owner set url = $1 where id = 1 and holder = $2', [url, instances.id])

  const readOwner = async () =>
    (
      await pool.query<{ url: string; holder: string | null }>(
        'select url, holder from embedded_chain_owner where id = 1',
      )
    ).rows[0]

  const readOwnerUrl = async (): Promise<string> => {
    const url = (await readOwner())?.url
    if (!url) throw new ChainUnreachable('No process has announced the embedded chain yet.')
    return url
  }

  /** Calls the owner; when it cannot be reached and is dead, takes the chain over. */
  const callOwner = async <T>(
    onRemote: (url: string) => Promise<T>,
    onEmbedded: (chain: EmbeddedChain) => Promise<T>,
  ): Promise<T> => {
    try {
      const url = await readOwnerUrl()
      // This process was the last owner and has lost the chain: a request to itself would recurse.
      if (url === ownUrl) throw new ChainUnreachable('The next owner of the embedded chain is not known yet.')
      return await onRemote(url)
    } catch (error) {
      if (!(error instanceof ChainUnreachable)) throw error
      if (await takeOver(true).catch(() => false)) return onEmbedded(embedded!)
      throw error
    }
  }

  const callChain = async <T>(
    onEmbedded: (chain: EmbeddedChain) => Promise<T>,
    onRemote: (url: string) => Promise<T>,
  ): Promise<T> => {
    if (closed) throw new ChainUnreachable('The embedded chain is closed.')
    const own = await findOwnChain()
    return own ? onEmbedded(own) : callOwner(onRemote, onEmbedded)
  }

  const callRemote = (url: string, method: string, params?: readonly unknown[]) =>
    createRemoteChain({ url: `${url}/api/dev/rpc` }).request(method, params)

  const hasLivingOwner = async (): Promise<boolean> => {
    const owner = await readOwner()
    if (owner?.holder && instances.isSeenAlive(owner.holder)) return true
    if (!owner?.url) return false
    return within(START_PROBE_MS, callRemote(owner.url, 'eth_chainId', [])).then(
      () => true,
      () => false,
    )
  }

  /** After a crash on another machine or container the chain is free when the grace has passed. */
  const takeOverAtStart = async () => {
    const endsAt = performance.now() + START_WAIT_MS
    let isUnreachable = false
    while (!(await takeOver(isUnreachable)) && mayOwn && performance.now() < endsAt) {
      if (await hasLivingOwner()) return
      isUnreachable = true
      await sleep(START_RETRY_MS)
    }
  }

  await takeOverAtStart()

  return {
    findHolder: async () => [(await readOwner())?.holder ?? []].flat(),
    isOwner: isCertainlyOwner,
    request: async (method, params) =>
      callChain(
        (chain) => chain.request(method, params),
        (url) => callRemote(url, method, params),
      ),
    mint: async (to, amountMicro) =>
      callChain(
        (chain) => chain.mint(to, amountMicro),
        (url) => remoteMint(url, to, amountMicro),
      ),
    async announce(url) {
      ownUrl = url
      if (mayOwn) await writeOwnerUrl(url)
    },
    async close() {
      closed = true
      await stepDown()
      if (mayOwn) await releaseLease()
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
