import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import type { Attestation } from './attestation.ts'
import type { AssetState } from './ingest.ts'
import { parseMeasurementState } from './measurement-state.ts'
import type { PollResult } from './poll-source.ts'
import type { Reading } from './quote.ts'

export type HistoryRow = {
  as_of: Date
  wrapper_price: number
  reference_price: number
  basis_bps: number
  near_reference_usd: number
  underlying_state: string
  window_score: number
  window_status: string
}

/** A body that is fetched again gets a new `stored_at`, so that it is not pruned while readings still refer to it. */
export async function storeBody(tx: Tx, sha256: string, body: Uint8Array, at: Date): Promise<void> {
  await sql`
    insert into basis_bodies (sha256, body, stored_at) values (${sha256}, ${Buffer.from(body)}, ${at})
    on conflict (sha256) do update set stored_at = greatest(basis_bodies.stored_at, excluded.stored_at)
  `.execute(tx)
}

export async function findBody(tx: Tx, sha256: string): Promise<Buffer | undefined> {
  const { rows } = await sql<{ body: Buffer }>`select body from basis_bodies where sha256 = ${sha256}`.execute(tx)
  return rows[0]?.body
}

export async function acquireLease(tx: Tx, holder: string, now: Date, until: Date): Promise<boolean> {
  const { rows } = await sql<{
    acquired: boolean
  }>`select take_basis_turn(${holder}, ${now}, ${until}) as acquired`.execute(tx)
  return rows[0]!.acquired
}

export async function loadAssetStates(tx: Tx): Promise<AssetState[]> {
  const { rows } = await sql<{
    asset: string
    reading: Reading | null
    reasons: string[]
    track: unknown
    attestation: Attestation | null
    seq: bigint
    hash: string | null
    updated_at: Date
  }>`select asset, reading, reasons, track, attestation, seq, hash, updated_at from basis_assets`.execute(tx)
  return rows.map(({ seq, updated_at, track, ...row }) => ({
    ...row,
    measurementState: parseMeasurementState(track),
    seq: Number(seq),
    updatedAt: updated_at,
  }))
}

/** `seq` only increases, so a process that lost its lease without noticing cannot fork the chain of attestations. */
export async function saveAssetState(tx: Tx, state: AssetState): Promise<void> {
  const { rows } = await sql<{ saved: boolean }>`
    insert into basis_assets as stored (asset, reading, reasons, track, attestation, seq, hash, updated_at)
    values (
      ${state.asset}, ${json(state.reading)}, ${json(state.reasons)}, ${json(state.measurementState)}, ${json(state.attestation)},
      ${state.seq}, ${state.hash}, ${state.updatedAt}
    )
    on conflict (asset) do update set
      reading = excluded.reading, reasons = excluded.reasons, track = excluded.track, attestation = excluded.attestation,
      seq = excluded.seq, hash = excluded.hash, updated_at = excluded.updated_at
    where stored.seq <= excluded.seq and (excluded.reading is null or stored.seq < excluded.seq)
    returning true as saved
  `.execute(tx)
  if (!rows[0]) throw new Error(`Another process has measured ${state.asset} in the meantime.`)
  if (state.reading) await insertReading(tx, state, state.reading)
}

async function insertReading(tx: Tx, state: AssetState, { quote, window }: Reading): Promise<void> {
  await sql`
    insert into basis_readings (
      asset, seq, as_of, wrapper_price, reference_price, basis_bps, near_reference_usd, underlying_state,
      window_score, window_status, hash, attestation
    )
    values (
      ${state.asset}, ${state.seq}, ${quote.as_of}, ${quote.wrapper_price}, ${quote.reference_price}, ${quote.basis_bps},
      ${quote.effective_float.near_reference_usd}, ${quote.underlying_state}, ${window.score}, ${window.status},
      ${state.hash}, ${json(state.attestation)}
    )
  `.execute(tx)
}

export async function recordFetches(tx: Tx, pollResults: readonly PollResult[]): Promise<void> {
  const rows = pollResults.flatMap(({ records, rejection, rejectedEntries }) => {
    const reason = rejection ?? (rejectedEntries.map((entry) => entry.reason).join('; ') || null)
    return records.map((record, index) => ({ ...record, refused: index === records.length - 1 ? reason : null }))
  })
  if (rows.length === 0) return
  await sql`
    insert into basis_fetches (source, url, status, body_sha256, fetched_at, published_at, block, refused)
    select source, url, status, body_sha256, fetched_at, published_at, block, refused
    from jsonb_to_recordset(${json(rows)}) as new_fetch (
      source text, url text, status int, body_sha256 text, fetched_at timestamptz, published_at timestamptz, block bigint, refused text
    )
  `.execute(tx)
}

export async function findHistory(
  tx: Tx,
  asset: string,
  from: Date,
  to: Date,
  stepMs: number,
  maxRows: number,
): Promise<HistoryRow[]> {
  const { rows } = await sql<HistoryRow>`
    select as_of, wrapper_price, reference_price, basis_bps, near_reference_usd, underlying_state, window_score, window_status
    from basis_history(${asset}, ${from}, ${to}, make_interval(secs => ${stepMs / 1000}), ${maxRows})
  `.execute(tx)
  return rows
}

export async function findAttestation(tx: Tx, asset: string, seq: number): Promise<Attestation | undefined> {
  const { rows } = await sql<{ attestation: Attestation | null }>`
    select attestation from basis_readings where asset = ${asset} and seq = ${seq}
  `.execute(tx)
  return rows[0]?.attestation ?? undefined
}

/** The attestation of the newest measured reading of a time. */
export async function findAttestationAt(tx: Tx, asset: string, asOf: Date): Promise<Attestation | undefined> {
  const { rows } = await sql<{ attestation: Attestation | null }>`
    select attestation from basis_readings where asset = ${asset} and as_of = ${asOf} order by seq desc limit 1
  `.execute(tx)
  return rows[0]?.attestation ?? undefined
}

export type StoredAttestation = { id: string; body: string }

export const findIssuedAttestation = (tx: Tx, id: string): Promise<StoredAttestation | undefined> =>
  tx.selectFrom('basis_attestations').select(['id', 'body']).where('id', '=', id).executeTakeFirst()

/** What was handed out for a reading, which is named by its time or, when it was measured, by its sequence number. */
export async function findIssuedReading(
  tx: Tx,
  asset: string,
  reading: { asOf: Date } | { seq: number },
): Promise<StoredAttestation | undefined> {
  const query = tx.selectFrom('basis_attestations').select(['id', 'body']).where('asset', '=', asset)
  const readingQuery =
    'asOf' in reading ? query.where('as_of', '=', reading.asOf) : query.where('seq', '=', BigInt(reading.seq))
  return readingQuery.orderBy('seq', 'desc').limit(1).executeTakeFirst()
}

export type AttestationFilter = { symbol?: string; chain?: string; since?: string; until?: string }

/** Newest first by (as_of, id); the cursor is the id of the last attestation of the page before. */
export function listIssuedAttestations(
  tx: Tx,
  { symbol, chain, since, until }: AttestationFilter,
  { limit, cursor }: { limit: number; cursor?: string },
): Promise<StoredAttestation[]> {
  let query = tx.selectFrom('basis_attestations').select(['id', 'body'])
  if (symbol !== undefined) query = query.where('symbol', '=', symbol)
  if (chain !== undefined) query = query.where('chain', '=', chain)
  if (since !== undefined) query = query.where('as_of', '>=', new Date(since))
  if (until !== undefined) query = query.where('as_of', '<', new Date(until))
  if (cursor !== undefined)
    query = query.where(sql<boolean>`(as_of, id) < (select as_of, id from basis_attestations where id = ${cursor})`)
  return query.orderBy('as_of', 'desc').orderBy('id', 'desc').limit(limit).execute()
}

/** Notifies every process of new readings when the transaction commits. */
export async function notifyMeasured(tx: Tx): Promise<void> {
  await sql`select pg_notify('basis', '')`.execute(tx)
}

export async function pruneBasis(tx: Tx, bodiesBefore: Date, readingsBefore: Date, maxRows: number): Promise<number> {
  const { rows } = await sql<{ deleted: number }>`
    select prune_basis(${bodiesBefore}, ${readingsBefore}, ${maxRows}) as deleted
  `.execute(tx)
  return rows[0]!.deleted
}

const json = (value: unknown) => sql`${value === null ? null : JSON.stringify(value)}::jsonb`
