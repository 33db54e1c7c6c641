import { sql } from 'kysely'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { KeyPurpose, Keys, PublicJwk } from '../../platform/keys.ts'

/** The public name of each purpose. It keeps a signature of one kind from passing as another. */
const publicPurposes: Record<KeyPurpose, string> = {
  receipts: 'receipt',
  log: 'log',
  tokens: 'preauth',
  quotes: 'quote',
  statements: 'statement',
  basis: 'attestation',
  'basis-preview': 'attestation-preview',
}

export type PublishedJwk = Omit<PublicJwk, 'purpose'> & { purpose: string }

const MAX_KEYS = 256

/**
 * The public half of every key that ever signed. A retired key stays in the set so that its signatures can be verified.
 * The keys in use are written at start, and the keys they replace are marked as retired.
 */
export function createKeySet({ db, keys, clock }: { db: Db; keys: Pick<Keys, 'publicJwks'>; clock: Clock }) {
  const current = keys.publicJwks().map(publishedJwk)
  const currentIds = current.map((jwk) => jwk.kid)

  return {
    async publish() {
      const now = clock.now()
      await db.transaction().execute(async (tx) => {
        for (const jwk of keys.publicJwks()) {
          await sql`
            insert into signing_keys (kid, purpose, jwk, created_at)
            values (${jwk.kid}, ${jwk.purpose}, ${JSON.stringify(publishedJwk(jwk))}::jsonb, ${now})
            on conflict (kid) do update set retired_at = null, jwk = excluded.jwk
          `.execute(tx)
        }
        await tx
          .updateTable('signing_keys')
          .set({ retired_at: now })
          .where('retired_at', 'is', null)
          .where('kid', 'not in', currentIds)
          .execute()
      })
    },

    /** The keys in use first, then the retired ones, newest first. */
    async all(): Promise<{ jwk: PublishedJwk; retired_at: Date | null }[]> {
      const rows = await db
        .selectFrom('signing_keys')
        .select(['kid', 'jwk', 'retired_at'])
        .where('kid', 'not in', currentIds)
        .orderBy('created_at', 'desc')
        .limit(MAX_KEYS - current.length)
        .execute()
      const others = rows.map((row) => ({ jwk: row.jwk as PublishedJwk, retired_at: row.retired_at }))
      return [...current.map((jwk) => ({ jwk, retired_at: null })), ...others]
    },
  }
}

export const publishedJwk = ({ purpose, ...jwk }: PublicJwk): PublishedJwk => ({
  ...jwk,
  purpose: publicPurposes[purpose],
})

/** `did:web` names a host: the port is part of it, the path is not. */
export const didOfUrl = (publicUrl: string): string => `did:web:${new URL(publicUrl).host.replace(':', '%3A')}`

/** The key set as a DID document, for verifiers that start from a DID instead of an address. */
export function didDocument(did: string, keys: readonly { jwk: PublishedJwk; retired_at: Date | null }[]) {
  const idOf = (jwk: PublishedJwk) => `${did}#${jwk.kid}`
  return {
    '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'],
    id: did,
    verificationMethod: keys.map(({ jwk }) => {
      const { kty, crv, x, alg } = jwk
      return { id: idOf(jwk), type: 'JsonWebKey2020', controller: did, publicKeyJwk: { kty, crv, x, alg } }
    }),
    // A retired key may no longer assert anything new; it stays above so that old statements can be verified.
    assertionMethod: keys.filter(({ retired_at }) => retired_at === null).map(({ jwk }) => idOf(jwk)),
  }
}
