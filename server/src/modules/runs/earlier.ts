import { differentBody } from '../../platform/idempotency.ts'
import { conflict } from '../../platform/problem.ts'
import { type Answer, replay } from './answer.ts'
import type { Ask, Deps } from './execute-run.ts'
import { findByKey, findByNonce } from './runs.store.ts'

/** What is needed to tell a request from one that was made before. */
export type Asked = Pick<Ask, 'caller' | 'paid' | 'requestHash' | 'bodyHash' | 'idempotencyKey'> & { route: string }

/** The same payment or the same key again: its stored answer, or the word that it is still being worked on. */
export async function findEarlier(
  d: Pick<Deps, 'db' | 'clock' | 'offer' | 'publicUrl'>,
  ask: Asked,
): Promise<Answer | undefined> {
  if (ask.paid) {
    const { from, nonce } = ask.paid.payment.authorization
    const known = await findByNonce(d.db, from, nonce)
    if (known) {
      const sameSignature =
        (known.settlement.payment as { signature?: string }).signature === ask.paid.payment.signature
      if (!sameSignature || known.run.request_hash !== ask.requestHash)
        throw conflict('This payment was used for another request. It was not charged again.')
      return replay(d, known.run, known.settlement)
    }
  }
  if (ask.idempotencyKey === undefined || ask.caller.kind !== 'tenant') return undefined
  const known = await findByKey(d.db, `tenant:${ask.caller.tenantId}`, ask.route, ask.idempotencyKey, d.clock.now())
  if (!known) return undefined
  if (known.bodyHash !== ask.bodyHash) throw differentBody()
  return replay(d, known.run, known.settlement)
}
