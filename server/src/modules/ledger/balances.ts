import type { JournalConsumer } from '../../platform/journal.ts'
import { countLedger } from './ledger.store.ts'

/** Adds posted transactions to the stored balances. Reads are exact without it; it keeps them cheap. */
export const balances: JournalConsumer = {
  name: 'balances',
  column: 'ledger_id',
  process: (tx, rows) =>
    countLedger(
      tx,
      rows.map((row) => row.ledger_id!),
    ),
}
