import { formatReceiptProof, hashLeaf, type LogPolicy, toBase64, utf8 } from '@countersign/proof'
import { sha256 } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Keys, Signer } from '../../platform/keys.ts'
import { toPage } from '../../platform/paging.ts'
import { invalid, notFound } from '../../platform/problem.ts'
import type { AuditHeadDraft } from '../audit/audit.ts'
import type { FindTransfers } from './check-settlement.ts'
import type { CountersDraft } from './commit-counters.ts'
import { type Explanation, explainReceipt } from './explain-receipt.ts'
import { createKeySet, didDocument, didOfUrl } from './key-set.ts'
import type { Issuer } from './offer-receipt.ts'
import type { ReceiptRow } from './receipts.steps.ts'
import {
  findEntry,
  findLogIndexes,
  findPayerOwner,
  findReceipt,
  issueReceipts,
  lastHashOfRun,
  listReceipts,
  type ReceiptFilter,
  type StoredReceipt,
} from './receipts.store.ts'
import {
  MAX_RECEIPT_BYTES,
  type PublicReceipt,
  type ReceiptDraft,
  type SignedReceipt,
  signReceipt,
} from './sign-receipt.ts'
import { createTransparencyLog, type LogPlace } from './transparency-log.ts'

export { type CountersDraft, commitCounters } from './commit-counters.ts'
export { saltHashes } from './salt-hashes.ts'
export { createCheckpointSubmission } from './submit-checkpoints.ts'

export type ReceiptsDeps = {
  db: Db
  keys: Keys
  clock: Clock
  publicUrl: () => string
  logName?: string
  /** Log keys that are being replaced and still sign beside the new one. */
  previousLogSigners?: readonly Signer[]
  /** Verifier key lines of the witnesses whose cosignatures are accepted. */
  witnesses?: readonly string[]
  /** The policy that a witnessed checkpoint must meet. */
  policy?: LogPolicy
  /** With a chain, verification also looks up the payment. */
  findTransfers?: FindTransfers
}

/** Not the public address, because that may change and a log must keep its name. */
const DEFAULT_LOG_NAME = 'countersign.local/log'

export type Commitment = {
  receiptId: string
  runId: string
  tenantId: string
  agentId: string | null
  issuedAt: Date
  hash: string
  counters: CountersDraft
}

/** The members that are null in a receipt that is not about a paid run. */
const emptyMembers = {
  loop_id: null,
  agent_id: null,
  route: null,
  pricing: null,
  governance: null,
  request_hash: null,
  input_hash: null,
  output_hash: null,
  salt: null,
  verification: null,
  settlement: null,
  tenant_id: null,
  payer: null,
}

export type Receipts = ReturnType<typeof createReceipts>

export function createReceipts(deps: ReceiptsDeps) {
  const signer = deps.keys.signer('receipts')
  const keySet = createKeySet(deps)
  const log = createTransparencyLog({
    db: deps.db,
    clock: deps.clock,
    origin: deps.logName ?? DEFAULT_LOG_NAME,
    signers: [deps.keys.signer('log'), ...(deps.previousLogSigners ?? [])],
    witnesses: deps.witnesses ?? [],
    policy: deps.policy,
  })

  /** Adds each receipt's place in the log, all proven against one checkpoint. */
  const withPlaces = async (rows: readonly StoredReceipt[]): Promise<PublicReceipt[]> => {
    const indexes = rows.flatMap((row) => (row.log_index === null ? [] : [Number(row.log_index)]))
    const places = await log.places(indexes)
    return rows.map((row) => ({ ...JSON.parse(row.body), log: places.get(Number(row.log_index ?? -1)) ?? null }))
  }

  const find = async (id: string) => {
    const row = await findReceipt(deps.db, id)
    if (!row) throw notFound('receipt')
    return row
  }

  const proofOf = async (id: string, options: { witnessed: boolean }) => {
    const row = await findEntry(deps.db, id)
    if (!row) throw notFound('entry')
    const places = row.log_index === null ? undefined : await log.places([Number(row.log_index)], options)
    return {
      receipt_id: row.id,
      hash: row.hash,
      leaf_hash: toBase64(hashLeaf(utf8(row.body))),
      log: places?.get(Number(row.log_index)) ?? null,
    }
  }

  const jwks = async () => ({ keys: (await keySet.all()).map(({ jwk }) => jwk) })

  return {
    /** The public log; its `consumer` takes receipts from the journal. */
    log,

    /** Pure: the same draft gives the same bytes, so the reconciler signs the same receipt as the request would. */
    sign: (draft: ReceiptDraft): SignedReceipt => signReceipt(signer, draft),

    /** Whether the payments that an address has signed were this tenant's, other tenants' or nobody's. */
    findPayerOwner: (tenantId: string, address: string) => findPayerOwner(deps.db, tenantId, address),

    /** The `prev_hash` of a correction or a refund; call it in the transaction that issues that receipt. */
    lastHashOfRun: (tx: Tx, runId: string) => lastHashOfRun(tx, runId),

    /** Puts heads of audit chains into the public log, under the chains' pseudonyms; returns the receipts' hashes. */
    async issueAuditHeads(tx: Tx, heads: readonly AuditHeadDraft[]): Promise<string[]> {
      const rows = heads.map(({ receipt_id, chain, seq, hash, prev_hash, issued_at }) => {
        const head = { kind: 'audit_head' as const, run_id: chain, audit: { chain, seq, hash } }
        return signReceipt(signer, { ...emptyMembers, ...head, receipt_id, issued_at, prev_hash }).row
      })
      await issueReceipts(tx, rows)
      return rows.map(({ hash }) => hash)
    },

    /** Puts the hash of a private receipt into the public log, so that it cannot be changed or backdated. */
    async issueCommitment(tx: Tx, { receiptId, runId, tenantId, agentId, issuedAt, hash, counters }: Commitment) {
      const { row } = signReceipt(signer, {
        ...emptyMembers,
        receipt_id: receiptId,
        run_id: runId,
        kind: 'rh_run',
        agent_id: agentId,
        issued_at: issuedAt.toISOString(),
        output_hash: hash,
        counters,
        prev_hash: await lastHashOfRun(tx, runId),
        tenant_id: tenantId,
      })
      await issueReceipts(tx, [row])
    },

    /** Called once at start: checks the log's name and publishes the keys in use. */
    async open() {
      await log.open()
      await keySet.publish()
    },

    async list(filter: ReceiptFilter, page: { limit: number; cursor?: string }) {
      if (page.cursor !== undefined && !(await findReceipt(deps.db, page.cursor)))
        throw invalid('The cursor is not the id of a receipt.')
      const rows = await listReceipts(deps.db, filter, { ...page, limit: page.limit + 1 })
      const { rows: receipts, ...paging } = toPage(rows, page.limit)
      return { receipts: await withPlaces(receipts), ...paging }
    },

    get: async (id: string): Promise<PublicReceipt> => (await withPlaces([await find(id)]))[0]!,

    /** Only the proof, for a caller that has the receipt. `log` is null until the sequencer has placed the receipt. */
    async proof(id: string, options: { witnessed: boolean }) {
      await find(id)
      return proofOf(id, options)
    },

    /** The proof of any entry of the log, a receipt or not. */
    proofOf,

    /** The row that makes a basis attestation an entry of the log. */
    attestationEntry: ({ id, issuedAt, body }: { id: string; issuedAt: Date; body: string }): ReceiptRow => {
      if (Buffer.byteLength(body) > MAX_RECEIPT_BYTES)
        throw new Error(`The attestation ${id} is larger than ${MAX_RECEIPT_BYTES} bytes.`)
      return {
        id,
        run_id: null,
        tenant_id: null,
        kind: 'attestation',
        agent_id: null,
        payer: null,
        issued_at: issuedAt.toISOString(),
        body,
        hash: sha256(body),
        prev_hash: null,
      }
    },

    /** The proof with the receipt in it as a C2SP tlog-proof file, which verifies against a policy alone. */
    async proofFile(id: string, options: { witnessed: boolean }): Promise<string> {
      const row = await find(id)
      const index = row.log_index === null ? -1 : Number(row.log_index)
      const place = index < 0 ? undefined : (await log.places([index], options)).get(index)
      if (!place)
        throw notFound(options.witnessed ? 'cosigned checkpoint with this receipt' : 'checkpoint with this receipt')
      return formatReceiptProof(JSON.parse(row.body), place)
    },

    /** The places of entries by their ids, all proven against one checkpoint; those without a place yet are left out. */
    async placesOf(ids: readonly string[]): Promise<Map<string, LogPlace>> {
      const entries = ids.length === 0 ? [] : await findLogIndexes(deps.db, ids)
      const places = await log.places(entries.map(({ log_index }) => Number(log_index)))
      return new Map(
        entries.flatMap(({ receipt_id, log_index }) => {
          const place = places.get(Number(log_index))
          return place ? [[receipt_id, place] as const] : []
        }),
      )
    },

    /** Explains each check of a receipt, given in full or by its id. */
    async verify(input: { receipt?: Record<string, unknown>; receipt_id?: string }): Promise<Explanation> {
      const { receipt, receipt_id } = input
      if ((receipt === undefined) === (receipt_id === undefined)) throw invalid('Send either receipt or receipt_id.')
      const subject = receipt ?? JSON.parse((await find(receipt_id!)).body)
      return explainReceipt({ db: deps.db, log, jwks, findTransfers: deps.findTransfers }, subject)
    },

    jwks,

    /** The signer of the x402 extension `offer-receipt`. */
    issuer: (purpose: 'quotes' | 'receipts', publicUrl = deps.publicUrl()): Issuer => ({
      did: didOfUrl(publicUrl),
      signer: deps.keys.signer(purpose),
    }),

    did: async () => didDocument(didOfUrl(deps.publicUrl()), await keySet.all()),
  }
}
