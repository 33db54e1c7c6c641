import { attestationId, attestationLeaf } from '@countersign/proof'
import { callStep } from '../../platform/batch.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { toPage } from '../../platform/paging.ts'
import { invalid, notFound } from '../../platform/problem.ts'
import { outsideTenantReads } from '../../platform/tenant-reads.ts'
import type { Receipts } from '../receipts/receipts.ts'
import type { Attestation } from './attestation.ts'
import { logAttestationStep } from './basis.steps.ts'
import { type AttestationFilter, findIssuedAttestation, listIssuedAttestations } from './basis.store.ts'

/** An attestation as it is handed out. Its id is a hash of what is signed, so that one reading has one. */
export type IssuedAttestation = Attestation & { id: string; proof_url: string }

export type IssuedAttestationsDeps = {
  db: Db
  clock: Clock
  entries: Pick<Receipts, 'attestationEntry' | 'placesOf' | 'proofOf'>
}

/**
 * Attestations that somebody asked for. Each becomes an entry of the public log before it is handed out, once a reading,
 * so that nobody can be shown another one; those that nobody asked for take no space.
 */
export function createIssuedAttestations({ db, clock, entries }: IssuedAttestationsDeps) {
  const withPlaces = async (bodies: readonly string[]) => {
    const attestations = bodies.map((body) => JSON.parse(body) as IssuedAttestation)
    const places = await entries.placesOf(attestations.map(({ id }) => id))
    return attestations.map((attestation) => ({ ...attestation, log: places.get(attestation.id) ?? null }))
  }

  const find = async (id: string) => {
    const row = await findIssuedAttestation(db, id)
    if (!row) throw notFound('attestation')
    return row
  }

  return {
    /** Several requests share this write, so it belongs to none of them. */
    issue: (asset: string, attestation: Attestation): Promise<IssuedAttestation> =>
      outsideTenantReads(async () => {
        const id = attestationId(attestation)
        const { symbol, chain, as_of, backing } = attestation
        const issued: IssuedAttestation = { ...attestation, id, proof_url: `/api/basis/v1/attestations/${id}/proof` }
        const entry = { id, issuedAt: clock.now(), body: Buffer.from(attestationLeaf(attestation)).toString('utf8') }
        const { body } = await db.transaction().execute((tx) =>
          callStep(tx, logAttestationStep, {
            id,
            asset,
            symbol,
            chain,
            as_of,
            seq: backing.evidence.seq,
            body: JSON.stringify(issued),
            receipt: entries.attestationEntry(entry),
          }),
        )
        return JSON.parse(body) as IssuedAttestation
      }),

    async list(filter: AttestationFilter, page: { limit: number; cursor?: string }) {
      if (page.cursor !== undefined && !(await findIssuedAttestation(db, page.cursor)))
        throw invalid('The cursor is not the id of an attestation.')
      const rows = await listIssuedAttestations(db, filter, { ...page, limit: page.limit + 1 })
      const { rows: listed, ...paging } = toPage(rows, page.limit)
      return { attestations: await withPlaces(listed.map(({ body }) => body)), ...paging }
    },

    get: async (id: string) => (await withPlaces([(await find(id)).body]))[0]!,

    async proof(id: string, options: { witnessed: boolean }) {
      await find(id)
      const { receipt_id: attestation_id, ...proof } = await entries.proofOf(id, options)
      return { attestation_id, ...proof }
    },
  }
}
