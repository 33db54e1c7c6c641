import { sql } from 'kysely'
import { StepRefused } from '../../platform/batch.ts'
import type { Tx } from '../../platform/db.ts'

type Verdict = { ok: true; result: unknown } | { ok: false; sqlstate: string; message: string; detail: string }

/** One step inside a transaction that has more to do. The locks are the ones, and in the order, of every other step. */
export async function takeStep<Result>(tx: Tx, step: string, item: unknown, locks: readonly string[]): Promise<Result> {
  const items = JSON.stringify([item], (_, value) => (typeof value === 'bigint' ? value.toString() : value))
  const { rows } = await sql<{ verdicts: Verdict[] }>`
    select each_item(${step}, ${items}::jsonb, ${[...locks]}::text[]) as verdicts
  `.execute(tx)
  const verdict = rows[0]!.verdicts[0]!
  if (verdict.ok) return verdict.result as Result
  if (/^CS\d{3}$/.test(verdict.sqlstate))
    throw new StepRefused(
      Number(verdict.sqlstate.slice(2)),
      verdict.message,
      verdict.detail ? JSON.parse(verdict.detail) : {},
    )
  throw Object.assign(new Error(verdict.message), { code: verdict.sqlstate, detail: verdict.detail })
}

/** The world moved between looking and acting: look again. */
export const shouldLookAgain = (error: unknown): boolean =>
  error instanceof StepRefused && ['rules_changed', 'room_changed', 'limit_reached'].includes(error.message)

/** How often something is judged anew because the world keeps moving. */
export const MAX_LOOKS = 12

/** Waits a little longer before each further look, and never as long as its rivals: then somebody gets through. */
export const beforeNextLook = (look: number) =>
  new Promise<void>((resume) => setTimeout(resume, Math.random() * Math.min(250, 4 * 2 ** look)))
