import pg from 'pg'
import { CommitUnknown, DatabaseUnavailable, isConnectFailure, isOutcomeUnknown } from './database-errors.ts'
import type { Primary } from './primary.ts'

/** A connection that knows whether its last commit was acknowledged, and when its statement has to be given up. */
export type WatchedClient = pg.Client & {
  /** The server it leads to, as it was when it was admitted. */
  serverIdentity?: string
  /** When the statement under way is given up, by `performance.now()`. */
  giveUpAt?: number
}

type Limits = {
  /** Undefined for connections whose statements may take as long as they need. */
  statementTimeoutMs: number | undefined
  /** The server's own limits do not apply to the wait of a commit for its standby. */
  commitWaitMs: number
  onUnknownCommit: () => void
  /** Behind a transaction pooler the next statement may reach another session, which lacks a prepared one. */
  isPooled?: boolean
}

type Callback = (error: Error | undefined, result: unknown) => void
type ClientClass = new (config?: string | pg.ClientConfig) => WatchedClient

/** The commit is in the log of this server, and the wait for a standby ended before the standby had it. */
const isWaitCancelled = ({ routine, message }: { routine?: string | undefined; message?: string | undefined }) =>
  routine === 'SyncRepWaitForLSN' || /^canceling (the )?wait for synchronous replication/.test(message ?? '')

export function createClientClass(primary: Primary, limits: Limits): ClientClass {
  return class extends pg.Client {
    serverIdentity?: string
    giveUpAt?: number
    #statements = 0
    #isCommitUnknown = false
    #lossError: Error | undefined
    #isReading = false

    constructor(config?: string | pg.ClientConfig) {
      super(config)
      // Without a listener, the event of a lost connection would end the process.
      this.on('error', (error) => primary.lose('a connection was lost', error))
      this.on('notice', (notice) => {
        if (!isWaitCancelled(notice)) return
        this.#isCommitUnknown = true
        limits.onUnknownCommit()
        primary.lose('a commit was not confirmed by a standby')
      })
    }

    // biome-ignore lint/suspicious/noExplicitAny: one method for all forms in which `pg` takes a statement
    override query(...args: any[]): any {
      const send = super.query as (...args: unknown[]) => unknown
      if (typeof args[0]?.submit === 'function') return send.apply(this, args)
      if (limits.isPooled && args[0]?.name) args[0] = { ...args[0], name: undefined }
      this.#statements += 1
      if (typeof args[0] === 'string') this.#noteTransaction(args[0])
      this.giveUpAt ??= this.#deadline(args[0])
      const callback = args.at(-1) as Callback | undefined
      if (typeof callback === 'function') {
        const last: Callback = (error, result) => callback(this.#end(error), result)
        return send.apply(this, [...args.slice(0, -1), last])
      }
      return (send.apply(this, args) as Promise<unknown>).then(
        (result) => {
          const error = this.#end(undefined)
          if (error) throw error
          return result
        },
        (error) => {
          throw this.#end(error)
        },
      )
    }

    /** In a transaction that only reads by its own declaration, a refused write says nothing about the server. */
    #noteTransaction(statement: string) {
      if (statement.startsWith('begin')) this.#isReading = statement.startsWith('begin read only')
    }

    #deadline(statement: unknown): number | undefined {
      if (limits.statementTimeoutMs === undefined) return undefined
      const executionMs = statement === 'commit' ? 0 : limits.statementTimeoutMs
      return performance.now() + executionMs + limits.commitWaitMs
    }

    /** The error that the caller of the statement gets. */
    #end(error: Error | undefined): Error | undefined {
      this.#statements -= 1
      this.giveUpAt = this.#statements > 0 ? this.#deadline(undefined) : undefined
      const isCommitUnknown = this.#isCommitUnknown
      this.#isCommitUnknown = false
      if ((error as { code?: string } | undefined)?.code === '25006' && !this.#isReading) {
        primary.lose('the server is read-only', error)
        return new DatabaseUnavailable('The database server is read-only.', { cause: error })
      }
      // A rollback on the lost connection must not hide that it was lost during a commit.
      if (error && isOutcomeUnknown(error)) this.#lossError ??= error
      if (error) return this.#lossError ?? error
      if (!isCommitUnknown) return undefined
      return new CommitUnknown('The commit was not confirmed by a standby; a failover could undo it.')
    }
  } as ClientClass
}

type Checkout = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: (error?: Error | boolean) => void,
) => void

/** A pool whose connections all lead to the server that was admitted, and that hands none out while there is no such server. */
export function createPrimaryPool(settings: pg.PoolConfig, primary: Primary, Client: ClientClass): pg.Pool {
  class PooledClient extends Client {
    constructor(config?: string | pg.ClientConfig) {
      super({ ...(config as pg.ClientConfig), ...primary.currentAddress() })
    }
  }

  class PrimaryPool extends pg.Pool {
    // biome-ignore lint/suspicious/noExplicitAny: one method for both forms of the pool's own
    override connect(checkout?: any): any {
      if (!checkout)
        return new Promise<pg.PoolClient>((resolve, reject) =>
          this.connect((error: Error | undefined, client: pg.PoolClient) => (error ? reject(error) : resolve(client))),
        )
      this.#attempt(checkout, performance.now() + primary.patienceMs())
    }

    #attempt(checkout: Checkout, deadline: number): void {
      if (primary.admission()) this.#checkOut(checkout, deadline)
      else
        primary.admit(Math.max(0, deadline - performance.now())).then(
          () => this.#checkOut(checkout, deadline),
          (error) => checkout(error, undefined, () => {}),
        )
    }

    #checkOut(checkout: Checkout, deadline: number): void {
      const onCheckout = (
        error: Error | undefined,
        client: pg.PoolClient | undefined,
        release: (error?: Error | boolean) => void,
      ) => {
        if (error) {
          if (!isConnectFailure(error)) return checkout(error, undefined, release)
          primary.lose('no connection could be made', error)
          if (performance.now() < deadline) return this.#attempt(checkout, deadline)
          return checkout(
            new DatabaseUnavailable('The database cannot be reached.', { cause: error }),
            undefined,
            release,
          )
        }
        const admission = primary.admission()
        if (admission && admission.identity === (client as WatchedClient).serverIdentity)
          return checkout(undefined, client, release)
        // While no server is admitted, the connection may turn out to lead to the right one.
        release(admission !== undefined)
        this.#attempt(checkout, deadline)
      }
      super.connect(onCheckout as never)
    }
  }

  return new PrimaryPool({
    ...settings,
    Client: PooledClient,
    onConnect: async (client: pg.ClientBase) => {
      ;(client as WatchedClient).serverIdentity = await primary.check(client)
    },
  } as pg.PoolConfig)
}
