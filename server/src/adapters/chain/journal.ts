/**
 * The journal of the embedded chain: the durable record behind an EVM that lives in memory. A transaction is appended
 * before anyone can see it, and a start rebuilds the token from these tables.
 */
import type { Hex } from '../../modules/payments/facilitator.ts'
import type { RpcBlock, RpcReceipt, RpcTransaction } from './rpc.ts'

export type UsedAuthorization = {
  authorizer: Hex
  nonce: Hex
  cancelled: boolean
  transaction: Hex
  /** Seconds since 1970 from which the token refuses the authorisation in any case; null when unknown. */
  validBefore: bigint | null
}

export type TokenEffects = {
  supplyDeltaMicro: bigint
  balanceDeltas: { owner: Hex; deltaMicro: bigint }[]
  authorizations: UsedAuthorization[]
  allowances: { owner: Hex; spender: Hex; amount: bigint }[]
  permitNonces: { owner: Hex; count: bigint }[]
}

export type MinedTransaction = {
  transaction: RpcTransaction
  receipt: RpcReceipt
  /** Null for the faucet's transactions, which are not signed. */
  raw: Hex | null
}

/** One mined block: header, transactions in order, and their effects on the token. */
export type MinedBlock = { header: RpcBlock; transactions: MinedTransaction[]; effects: TokenEffects }

export type JournalState = {
  /** Fences writers: after another `load`, appends under an older epoch are refused. */
  epoch: bigint
  /** No block number up to this one may be used again, whether its block was journalled or not. */
  reservedBlock: bigint
  time: bigint
  supplyMicro: bigint
  balances: AsyncIterable<{ owner: Hex; amountMicro: bigint }[]>
  /** Used authorisations that have not expired; the token refuses expired ones anyway. */
  authorizations: AsyncIterable<{ authorizer: Hex; nonce: Hex }[]>
  allowances: AsyncIterable<{ owner: Hex; spender: Hex; amount: bigint }[]>
  permitNonces: AsyncIterable<{ owner: Hex; count: bigint }[]>
  accounts: AsyncIterable<{ address: Hex; nonce: bigint }[]>
}

export type LogQuery = {
  fromBlock: bigint
  toBlock: bigint
  /** When the filter names one authorisation, only its transaction is searched. */
  authorization?: { authorizer: Hex; nonce: Hex }
  /** Maximum number of transactions; beyond it the result is `too_many`, never a truncated list. */
  limit: number
}

export type ChainJournal = {
  /** Takes the journal over from its previous writer and returns its state. */
  load(): Promise<JournalState>
  /** Durable when it returns. Throws `JournalTakenOver` when another process has loaded the journal since. */
  append(epoch: bigint, block: MinedBlock): Promise<void>
  reserveBlocks(epoch: bigint, upTo: bigint): Promise<void>
  isAuthorizationUsed(authorizer: Hex, nonce: Hex): Promise<boolean>
  findTransaction(hash: Hex): Promise<{ transaction: RpcTransaction; receipt: RpcReceipt } | null>
  findBlock(
    key: { number: bigint } | { hash: Hex },
  ): Promise<{ header: RpcBlock; transactions: RpcTransaction[] } | null>
  /** Receipts in chain order, or `too_many`. */
  findReceipts(query: LogQuery): Promise<RpcReceipt[] | 'too_many'>
}

export class JournalTakenOver extends Error {
  constructor() {
    super('Another process has taken over the embedded chain.')
    this.name = 'JournalTakenOver'
  }
}

/** The part of `pg.Pool` that the journal uses. */
export type Database = { query(text: string, values: unknown[]): Promise<{ rows: Record<string, unknown>[] }> }

const PAGE_SIZE = 5_000

/** With a holder, only that process of `embedded_chain_owner` may take the journal over: a former one cannot take it back. */
export function createPostgresJournal(database: Database, holder?: string): ChainJournal {
  const select = async <Row>(text: string, values: unknown[]) => (await database.query(text, values)).rows as Row[]

  /** Reads in pages by key, so that a long history is never in memory at once. */
  async function* selectPages<Row extends Record<string, string>>(
    table: string,
    key: (keyof Row & string)[],
    valueColumns: string[],
    condition = 'true',
  ) {
    const columns = [...key, ...valueColumns].map((column) => `${column}::text as ${column}`).join(', ')
    const order = key.join(', ')
    let after: string[] | undefined
    for (;;) {
      const where = after ? `(${order}) > (${key.map((_, index) => `$${index + 1}`).join(', ')})` : 'true'
      const rows = await select<Row>(
        `select ${columns} from ${table} where ${where} and ${condition} order by ${order} limit ${PAGE_SIZE}`,
        after ?? [],
      )
      if (rows.length > 0) yield rows
      if (rows.length < PAGE_SIZE) return
      const last = rows.at(-1)!
      after = key.map((column) => last[column]!)
    }
  }

  async function* mapPages<Row extends Record<string, string>, Item>(
    source: AsyncIterable<Row[]>,
    toItem: (row: Row) => Item,
  ) {
    for await (const rows of source) yield rows.map(toItem)
  }

  // The lock makes a change of the holder wait until the epoch is written.
  const isHolder =
    holder === undefined ? 'true' : 'exists (select from embedded_chain_owner where id = 1 and holder = $1 for share)'

  return {
    async load() {
      const [head] = await select<{ epoch: string; reserved_block: string; block_time: string; supply: string }>(
        `insert into chain_head (id, epoch) select 1, 1 where ${isHolder}
         on conflict (id) do update set epoch = chain_head.epoch + 1
         returning epoch::text, reserved_block::text, block_time::text, supply::text`,
        holder === undefined ? [] : [holder],
      )
      if (!head) throw new JournalTakenOver()
      return {
        epoch: BigInt(head.epoch),
        reservedBlock: BigInt(head.reserved_block),
        time: BigInt(head.block_time),
        supplyMicro: BigInt(head.supply),
        balances: mapPages(
          selectPages<{ owner: Hex; amount: string }>('chain_balances', ['owner'], ['amount']),
          (row) => ({
            owner: row.owner,
            amountMicro: BigInt(row.amount),
          }),
        ),
        authorizations: selectPages<{ authorizer: Hex; nonce: Hex }>(
          'chain_authorizations',
          ['authorizer', 'nonce'],
          [],
          `(valid_before is null or valid_before > ${BigInt(head.block_time)})`,
        ),
        allowances: mapPages(
          selectPages<{ owner: Hex; spender: Hex; amount: string }>(
            'chain_allowances',
            ['owner', 'spender'],
            ['amount'],
          ),
          (row) => ({ owner: row.owner, spender: row.spender, amount: BigInt(row.amount) }),
        ),
        permitNonces: mapPages(
          selectPages<{ owner: Hex; count: string }>('chain_permits', ['owner'], ['count']),
          (row) => ({
            owner: row.owner,
            count: BigInt(row.count),
          }),
        ),
        accounts: mapPages(
          selectPages<{ address: Hex; nonce: string }>('chain_accounts', ['address'], ['nonce']),
          (row) => ({
            address: row.address,
            nonce: BigInt(row.nonce),
          }),
        ),
      }
    },

    async append(epoch, block) {
      const { header, transactions, effects } = block
      const rows = await select(APPEND_BLOCK, [
        epoch.toString(),
        BigInt(header.number).toString(),
        BigInt(header.timestamp).toString(),
        effects.supplyDeltaMicro.toString(),
        header.hash,
        JSON.stringify(header),
        transactions.map((mined) => mined.transaction.hash),
        transactions.map((mined) => mined.transaction.from),
        transactions.map((mined) => (BigInt(mined.transaction.nonce) + 1n).toString()),
        transactions.map((mined) => mined.raw),
        transactions.map((mined) => JSON.stringify(mined.transaction)),
        transactions.map((mined) => JSON.stringify(mined.receipt)),
        JSON.stringify(effects.balanceDeltas.map((item) => ({ owner: item.owner, delta: item.deltaMicro.toString() }))),
        JSON.stringify(
          effects.authorizations.map(({ validBefore, ...authorization }) => ({
            ...authorization,
            valid_before: validBefore?.toString(),
          })),
        ),
        JSON.stringify(effects.allowances.map((item) => ({ ...item, amount: item.amount.toString() }))),
        JSON.stringify(effects.permitNonces.map((item) => ({ ...item, count: item.count.toString() }))),
      ])
      if (rows.length === 0) throw new JournalTakenOver()
    },

    async reserveBlocks(epoch, upTo) {
      const rows = await select(
        `update chain_head set reserved_block = greatest(reserved_block, $2::bigint)
         where id = 1 and epoch = $1::bigint returning 1`,
        [epoch.toString(), upTo.toString()],
      )
      if (rows.length === 0) throw new JournalTakenOver()
    },

    async isAuthorizationUsed(authorizer, nonce) {
      const rows = await select('select 1 from chain_authorizations where authorizer = $1 and nonce = $2', [
        authorizer,
        nonce,
      ])
      return rows.length > 0
    },

    async findTransaction(hash) {
      const [row] = await select<{ transaction: RpcTransaction; receipt: RpcReceipt }>(
        'select transaction, receipt from chain_transactions where hash = $1',
        [hash.toLowerCase()],
      )
      return row ?? null
    },

    async findBlock(key) {
      const [row] = await select<{ header: RpcBlock; transactions: RpcTransaction[] }>(
        `select header,
                coalesce((select json_agg(mined.transaction order by mined.index) from chain_transactions mined
                          where mined.block_number = block.number), '[]') as transactions
         from chain_blocks block where ${'hash' in key ? 'block.hash = $1' : 'block.number = $1::bigint'}`,
        ['hash' in key ? key.hash.toLowerCase() : key.number.toString()],
      )
      return row ?? null
    },

    async findReceipts({ fromBlock, toBlock, authorization, limit }) {
      const rows = authorization
        ? await select<{ receipt: RpcReceipt }>(
            `select mined.receipt from chain_authorizations used join chain_transactions mined on mined.hash = used.transaction
             where used.authorizer = $1 and used.nonce = $2 and mined.block_number between $3::bigint and $4::bigint`,
            [authorization.authorizer, authorization.nonce, fromBlock.toString(), toBlock.toString()],
          )
        : await select<{ receipt: RpcReceipt }>(
            `select receipt from chain_transactions where block_number between $1::bigint and $2::bigint
             order by block_number, index limit $3`,
            [fromBlock.toString(), toBlock.toString(), limit + 1],
          )
      return rows.length > limit ? 'too_many' : rows.map((row) => row.receipt)
    },
  }
}

/**
 * One statement, so one round trip and one commit for a whole block. Every insert selects from `head`: a writer with an
 * old epoch updates no row there, and then nothing else is written either.
 */
const APPEND_BLOCK = `
with head as (
  update chain_head
  set supply = supply + $4::numeric,
      block_time = greatest(block_time, $3::bigint),
      reserved_block = greatest(reserved_block, $2::bigint)
  where id = 1 and epoch = $1::bigint
  returning epoch
), new_block as (
  insert into chain_blocks (number, hash, time, header)
  select $2::bigint, $5, $3::bigint, $6::json from head
), sent as (
  select item.* from head, unnest($7::text[], $8::text[], $9::bigint[], $10::text[], $11::text[], $12::text[])
    with ordinality as item(hash, sender, account_nonce, raw, transaction, receipt, place)
), new_transactions as (
  insert into chain_transactions (hash, block_number, index, raw, transaction, receipt)
  select hash, $2::bigint, place - 1, raw, transaction::json, receipt::json from sent
), new_accounts as (
  insert into chain_accounts (address, nonce)
  select sender, max(account_nonce) from sent group by sender
  on conflict (address) do update set nonce = greatest(chain_accounts.nonce, excluded.nonce)
), moved as (
  select item.* from head, jsonb_to_recordset($13::jsonb) as item(owner text, delta numeric)
), known_balances as (
  update chain_balances balance set amount = balance.amount + moved.delta from moved
  where moved.owner = balance.owner returning balance.owner
), new_balances as (
  insert into chain_balances (owner, amount)
  select owner, delta from moved where owner not in (select owner from known_balances)
), new_authorizations as (
  insert into chain_authorizations (authorizer, nonce, cancelled, valid_before, transaction)
  select item.authorizer, item.nonce, item.cancelled, item.valid_before, item.transaction
  from head, jsonb_to_recordset($14::jsonb)
    as item(authorizer text, nonce text, cancelled boolean, valid_before numeric, transaction text)
), new_allowances as (
  insert into chain_allowances (owner, spender, amount)
  select item.owner, item.spender, item.amount
  from head, jsonb_to_recordset($15::jsonb) as item(owner text, spender text, amount numeric)
  on conflict (owner, spender) do update set amount = excluded.amount
), new_permits as (
  insert into chain_permits (owner, count)
  select item.owner, item.count from head, jsonb_to_recordset($16::jsonb) as item(owner text, count numeric)
  on conflict (owner) do update set count = excluded.count
)
select epoch from head`
