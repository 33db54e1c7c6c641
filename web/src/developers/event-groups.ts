export type EventType = { type: string; description: string }
export type EventGroup = { name: string; types: EventType[] }

const groupNames: Record<string, string> = {
  run: 'Runs',
  approval: 'Approvals',
  preauth: 'Pre-authorisations',
  budget: 'Budgets',
  settlement: 'Settlements',
  receipt: 'Receipts',
  policy: 'Policies',
  alert: 'Alerts',
  rh_run: 'Brokerage',
  wallet: 'Wallets',
  escrow: 'Escrow',
  key: 'Keys',
  basis: 'Basis',
}

/** Event types by what they are about, in the order of the service; a new kind has its own name. */
export function groupEventTypes(types: readonly EventType[]): EventGroup[] {
  const groups = Map.groupBy(types, ({ type }) => type.split('.', 1)[0]!)
  return [...groups].map(([kind, members]) => ({ name: groupNames[kind] ?? kind, types: members }))
}
