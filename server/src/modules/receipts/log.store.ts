import type { Tile } from '@countersign/proof'
import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import type { StoredTile } from './inclusion-proofs.ts'

/** The newest checkpoint, and what witnesses added to it. */
export type LogHead = { origin: string; size: number; root: Buffer; note: string; cosignatures: string }

export async function readHead(tx: Tx): Promise<LogHead | undefined> {
  const { rows } = await sql<Omit<LogHead, 'size'> & { size: bigint }>`
    select origin, size, root, note,
           (select coalesce(string_agg(line, '' order by witness), '') from log_cosignatures cosignature where cosignature.size = head.size) as cosignatures
    from log_head head
  `.execute(tx)
  return rows[0] && { ...rows[0], size: Number(rows[0].size) }
}

export async function writeHead(tx: Tx, head: Omit<LogHead, 'cosignatures'>, at: Date) {
  await sql`
    insert into log_head (id, origin, size, root, note, updated_at)
    values (1, ${head.origin}, ${head.size}, ${head.root}, ${head.note}, ${at})
    on conflict (id) do update set size = excluded.size, root = excluded.root, note = excluded.note, updated_at = excluded.updated_at
  `.execute(tx)
}

/** The leaves of these receipts in the order of their ids' list: hashes of the bodies, computed where the bodies are (RFC 6962). */
export async function readLeaves(tx: Tx, ids: readonly string[]): Promise<Buffer[]> {
  const { rows } = await sql<{ leaf: Buffer }>`
    select sha256('\\x00'::bytea || convert_to(receipt.body, 'UTF8')) as leaf
    from unnest(${ids}::text[]) with ordinality as waiting (id, place) join receipts receipt on receipt.id = waiting.id
    order by waiting.place
  `.execute(tx)
  return rows.map(({ leaf }) => leaf)
}

/** Puts receipts into the log at consecutive indexes starting at `first`, and adds them to the sums of their lanes. */
export async function placeReceipts(tx: Tx, first: number, ids: readonly string[]) {
  await sql`
    with placed as (
      insert into log_entries (log_index, receipt_id)
      select ${first}::bigint + place - 1, id from unnest(${ids}::text[]) with ordinality as receipt (id, place)
    )
    select fold_lane_receipts(${ids}::text[])
  `.execute(tx)
}

export async function readTiles(tx: Tx, tiles: readonly Tile[]): Promise<StoredTile[]> {
  const levels = tiles.map((tile) => tile.level)
  const indexes = tiles.map((tile) => tile.index)
  const { rows } = await sql<{ level: number; index: bigint; bytes: Buffer }>`
    select level, index, bytes from log_tiles
    join unnest(${levels}::int[], ${indexes}::bigint[]) as tile (level, index) using (level, index)
  `.execute(tx)
  return rows.map((row) => ({ ...row, index: Number(row.index) }))
}

export async function writeTiles(tx: Tx, tiles: readonly { tile: Tile; bytes: Uint8Array }[]) {
  const levels = tiles.map(({ tile }) => tile.level)
  const indexes = tiles.map(({ tile }) => tile.index)
  const bytes = tiles.map((entry) => Buffer.from(entry.bytes))
  await sql`
    insert into log_tiles (level, index, bytes)
    select * from unnest(${levels}::int[], ${indexes}::bigint[], ${bytes}::bytea[])
    on conflict (level, index) do update set bytes = excluded.bytes
  `.execute(tx)
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
  `.execute(tx)
}

/** The cosignatures of the largest tree that a witness has signed. */
export async function readNewestCosignatures(tx: Tx): Promise<{ size: number; cosignatures: string } | undefined> {
  const { rows } = await sql<{ size: bigint; cosignatures: string }>`
    select size, string_agg(line, '' order by witness) as cosignatures
    from log_cosignatures where size = (select max(size) from log_cosignatures) group by size
  `.execute(tx)
  return rows[0] && { size: Number(rows[0].size), cosignatures: rows[0].cosignatures }
}
