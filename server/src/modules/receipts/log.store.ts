import type { Tile } from '@countersign/proof'
import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import type { StoredTile } from './inclusion-proofs.ts'

/** The newest checkpoint that was signed, and what witnesses added to it. */
export type LogHead = { origin: string; size: number; root: Buffer; note: string; cosignatures: string }

export async function readHead(tx: Tx): Promise<LogHead | undefined> {
  const { rows } = await sql<Omit<LogHead, 'size'> & { size: bigint }>`
    select origin, size, root, note,
           (select coalesce(string_agg(line, '' order by witness), '') from log_cosignatures cosignature where cosignature.size = head.size) as cosignatures
    from log_head head where note <> ''
  `.execute(tx)
  return rows[0] && { ...rows[0], size: Number(rows[0].size) }
}

type AppendState = {
  /** The tree as it was last written, and the newest signed checkpoint, which may be of a smaller one. */
  head: Pick<LogHead, 'root' | 'note'> | undefined
  size: number
  tiles: StoredTile[]
  leaves: Buffer
}

/**
 * All that an append starts from, in one statement: the head, the last tile of each level, and the leaves of the new
 * receipts in the order of `ids`. A leaf is the hash of a body (RFC 6962), computed where the bodies are.
 */
export async function readAppendState(tx: Tx, ids: readonly string[]): Promise<AppendState> {
  const { rows } = await sql<{
    size: bigint | null
    root: Buffer
    note: string
    level: number | null
    index: bigint
    bytes: Buffer
    leaves: Buffer
  }>`
    with head as (
      -- A process of an earlier release writes only the signed checkpoint.
      select note, greatest(size, appended_size) as size, case when appended_size > size then appended_root else root end as root
      from log_head
    )
    select head.size, head.root, head.note, tile.level, tile.index, tile.bytes, waiting.leaves
    from (
      select coalesce(string_agg(sha256('\\x00'::bytea || convert_to(receipt.body, 'UTF8')), '' order by listed.place), '') as leaves
      from unnest(${ids}::text[]) with ordinality as listed (id, place) join receipts receipt on receipt.id = listed.id
    ) waiting
    left join head on true
    left join (
      select part.level, part.index, string_agg(part.bytes, '' order by part.part) as bytes
      from head cross join generate_series(0, 6) as last_level
      join log_tiles part on part.level = last_level and part.index = head.size >> (8 * (last_level + 1))
      group by part.level, part.index
    ) tile on true
  `.execute(tx)
  const { size, root, note, leaves } = rows[0]!
  const tiles = rows.flatMap(({ level, index, bytes }) =>
    level === null ? [] : [{ level, index: Number(index), bytes }],
  )
  return { head: size === null ? undefined : { root, note }, size: Number(size ?? 0), tiles, leaves }
}

export type TilePart = { level: number; index: number; part: number; bytes: Buffer }

const PART_BYTES = 32 * 32

/** The parts of a tile that changed since it had `oldLength` bytes: the last one of then, and those after it. */
export function partsSince({ level, index }: Tile, bytes: Uint8Array, oldLength: number): TilePart[] {
  const parts: TilePart[] = []
  for (let part = Math.floor(oldLength / PART_BYTES); part * PART_BYTES < bytes.length; part += 1)
    parts.push({ level, index, part, bytes: Buffer.from(bytes.subarray(part * PART_BYTES, (part + 1) * PART_BYTES)) })
  return parts
}

export type Append = {
  /** Where the receipts go, at consecutive indexes. */
  first: number
  ids: readonly string[]
  /** What the tiles grew by. */
  parts: readonly TilePart[]
  tree: Pick<LogHead, 'origin' | 'size' | 'root'>
  at: Date
}

/** Writes receipts' places, what the tiles grew by and the new tree in one statement, and adds to the sums of the lanes. */
export async function writeAppend(tx: Tx, { first, ids, parts, tree, at }: Append) {
  const column = <K extends keyof TilePart>(name: K) => parts.map((part) => part[name])
  await sql`
    with placed as (
      insert into log_entries (log_index, receipt_id)
      select ${first}::bigint + place - 1, id from unnest(${ids}::text[]) with ordinality as receipt (id, place)
    ), grown as (
      insert into log_tiles (level, index, part, bytes)
      select * from unnest(${column('level')}::int[], ${column('index')}::bigint[], ${column('part')}::int[], ${column('bytes')}::bytea[])
      on conflict (level, index, part) do update set bytes = excluded.bytes
    ), appended as (
      insert into log_head (id, origin, size, root, note, appended_size, appended_root, updated_at)
      values (1, ${tree.origin}, 0, sha256(''), '', ${tree.size}, ${tree.root}, ${at})
      on conflict (id) do update set appended_size = excluded.appended_size, appended_root = excluded.appended_root
    )
    select fold_lane_receipts(${ids}::text[])
  `.execute(tx)
}

/**
 * Publishes the signed checkpoint of a tree whose commit was confirmed; false when the log does not hold that tree. The
 * commit waits for nobody: a checkpoint that is lost is signed again, which gives the same signature.
 */
export async function publishHead(db: Tx, { size, root, note }: Pick<LogHead, 'size' | 'root' | 'note'>, at: Date) {
  const { numAffectedRows } = await sql`
    update log_head set size = ${size}, root = ${root}, note = ${note}, updated_at = ${at}
    where id = 1 and size <= ${size} and set_config('synchronous_commit', 'off', true) is not null
      and case when appended_size > size then appended_size else size end >= ${size}
      and case when appended_size = ${size} then appended_root = ${root} when size = ${size} then root = ${root} else true end
  `.execute(db)
  return numAffectedRows === 1n
}

export async function readTiles(tx: Tx, tiles: readonly Tile[]): Promise<StoredTile[]> {
  const levels = tiles.map((tile) => tile.level)
  const indexes = tiles.map((tile) => tile.index)
  const { rows } = await sql<{ level: number; index: bigint; bytes: Buffer }>`
    select level, index, string_agg(bytes, '' order by part) as bytes from log_tiles
    join unnest(${levels}::int[], ${indexes}::bigint[]) as tile (level, index) using (level, index)
    group by level, index
  `.execute(tx)
  return rows.map((row) => ({ ...row, index: Number(row.index) }))
}

/** The entries of the log from `first` on: exactly the bytes that the leaves are hashes of. */
export async function readEntries(tx: Tx, first: number, count: number): Promise<string[]> {
  const { rows } = await sql<{ body: string }>`
    select receipt.body from log_entries entry join receipts receipt on receipt.id = entry.receipt_id
    where entry.log_index >= ${first} and entry.log_index < ${first + count} order by entry.log_index
  `.execute(tx)
  return rows.map((row) => row.body)
}

const MAX_COSIGNED_SIZES = 1_000

export async function saveCosignature(tx: Tx, size: number, witness: string, line: string, at: Date) {
  await sql`
    insert into log_cosignatures (size, witness, line, cosigned_at) values (${size}, ${witness}, ${line}, ${at})
    on conflict (size, witness) do update set line = excluded.line, cosigned_at = excluded.cosigned_at
  `.execute(tx)
  await sql`
    delete from log_cosignatures
    where size < (select size from log_cosignatures group by size order by size desc offset ${MAX_COSIGNED_SIZES} limit 1)
      and size <> (select published_size from log_quorum)
  `.execute(tx)
}

export async function readCosignatures(tx: Tx, size: number): Promise<string> {
  const { rows } = await sql<{ cosignatures: string }>`
    select coalesce(string_agg(line, '' order by witness), '') as cosignatures from log_cosignatures where size = ${size}
  `.execute(tx)
  return rows[0]!.cosignatures
}

/** The cosignatures of the largest tree that a witness has signed. */
export async function readNewestCosignatures(tx: Tx): Promise<{ size: number; cosignatures: string } | undefined> {
  const { rows } = await sql<{ size: bigint; cosignatures: string }>`
    select size, string_agg(line, '' order by witness) as cosignatures
    from log_cosignatures where size = (select max(size) from log_cosignatures) group by size
  `.execute(tx)
  return rows[0] && { size: Number(rows[0].size), cosignatures: rows[0].cosignatures }
}
