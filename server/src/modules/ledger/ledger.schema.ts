import { Type } from 'typebox'
import { cursorParameter, pageFields } from '../../platform/paging.ts'
import { nullable, oneOf, pattern } from '../../platform/schema.ts'
import { amountFields } from './amounts.ts'

const literals = (...names: string[]) => Type.Union(names.map((name) => Type.Literal(name)))
const strict = { additionalProperties: false }
const id = Type.String({ minLength: 1, maxLength: 80 })
const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 100 }))
const idempotency_key = Type.Optional(Type.String({ minLength: 1, maxLength: 255 }))
const reason = Type.String({ minLength: 1, maxLength: 500 })
const evmAddress = Type.String(pattern('^0x[0-9a-fA-F]{40}$', "an address: '0x' and 40 hexadecimal digits"))

export const IdParams = Type.Object({ id })

export const LedgerQuery = Type.Object(
  {
    account: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    ref: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'The run, escrow or payout that an entry is about.' }),
    ),
    limit,
    cursor: Type.Optional(id),
  },
  strict,
)

export const LedgerResponse = Type.Object(
  {
    entries: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          transaction_id: Type.String(),
          account: Type.String(),
          direction: literals('debit', 'credit'),
          amount: Type.String({ description: 'Atomic units of the asset.' }),
          asset: Type.String(),
          status: literals('pending', 'posted', 'voided'),
          code: Type.String(),
          ref: Type.String(),
          created_at: Type.String(),
          balance_after: Type.String({
            description:
              "The balance of the account after this entry, counting posted entries only, with the account's normal sign: a liability is positive when we owe.",
          }),
        },
        { title: 'LedgerEntry' },
      ),
    ),
    accounts: Type.Array(
      Type.Object(
        {
          account: Type.String(),
          type: literals('asset', 'liability', 'revenue', 'expense', 'equity', 'other'),
          asset: Type.String(),
          balance: Type.String(),
        },
        { title: 'LedgerAccount' },
      ),
      { description: 'Every account of the tenant with its current balance.' },
    ),
    invariants: Type.Object(
      {
        balanced: Type.Boolean({ description: 'Debits and credits are equal, in every asset.' }),
        wallets_match: Type.Boolean({ description: 'Every wallet holds what its entries say.' }),
      },
      { description: 'Computed from the entries at the time of the request.' },
    ),
    ...pageFields,
  },
  { title: 'LedgerResponse' },
)

const balances = <T extends Parameters<typeof Type.Union>[0][number]>(type: T) =>
  Type.Object({ available: type, pending: type, escrowed: type, reserved: type })

export const Wallet = Type.Object(
  {
    wallet_id: Type.String(),
    name: Type.String(),
    address: Type.String({
      description:
        'The address that holds the USDC. It belongs to the service, and a wallet is a claim on it. Fund a wallet with the top-up call; a plain transfer to the address is not credited to any wallet.',
    }),
    network: Type.String(),
    asset: Type.String(),
    balance: Type.Object(balances(Type.String()).properties, {
      description:
        'Atomic units. `available` can be spent; `pending` is a top-up on its way; `escrowed` is held in escrow; `reserved` is held for runs and withdrawals in progress.',
    }),
    balance_usdc: balances(Type.Number()),
    created_at: Type.String(),
  },
  { title: 'Wallet' },
)

export const WalletCreate = Type.Object(
  { name: Type.Optional(Type.String({ minLength: 1, maxLength: 120 })), idempotency_key },
  { ...strict, title: 'WalletCreate' },
)
export const WalletsQuery = Type.Object({ limit, cursor: cursorParameter('wal') }, strict)
export const WalletsResponse = Type.Object({ wallets: Type.Array(Wallet), ...pageFields }, { title: 'WalletsResponse' })

const escrowState = literals('held', 'released', 'refunded', 'disputed', 'expired')

export const Escrow = Type.Object(
  {
    escrow_id: Type.String(),
    wallet_id: Type.String(),
    to_wallet_id: nullable(Type.String()),
    run_id: nullable(Type.String()),
    status: escrowState,
    amount: Type.String(),
    amount_usdc: Type.Number(),
    memo: nullable(Type.String()),
    reason: nullable(Type.String()),
    expires_at: Type.String(),
    created_at: Type.String(),
    ended_at: nullable(Type.String()),
  },
  { title: 'Escrow' },
)

export const EscrowCreate = Type.Object(
  {
    ...amountFields,
    to_wallet_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 80,
        description: 'The wallet that is paid on release; the service itself when absent.',
      }),
    ),
    memo: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
    expires_in_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 90 * 86_400,
        description: 'Seven days when absent. An undisputed escrow is refunded then.',
      }),
    ),
    idempotency_key,
  },
  { ...strict, title: 'EscrowCreate' },
)
export const EscrowsQuery = Type.Object(
  { limit, cursor: cursorParameter('esc'), state: Type.Optional(escrowState) },
  strict,
)
export const TenantEscrowsQuery = Type.Object(
  {
    ...EscrowsQuery.properties,
    side: Type.Optional(
      oneOf(['sent', 'received'], {
        description: 'Those that the tenant pays, or those that pay it; both when absent.',
      }),
    ),
  },
  strict,
)
export const EscrowsResponse = Type.Object({ escrows: Type.Array(Escrow), ...pageFields }, { title: 'EscrowsResponse' })
export const EscrowEnd = Type.Object(
  { reason: Type.Optional(reason), idempotency_key },
  { ...strict, title: 'EscrowEnd' },
)
export const EscrowDispute = Type.Object({ reason, idempotency_key }, { ...strict, title: 'EscrowDispute' })
export const EscrowResolve = Type.Object(
  { outcome: literals('release', 'refund'), reason, idempotency_key },
  { ...strict, title: 'EscrowResolve' },
)

const payoutState = literals('pending', 'paid', 'cancelled', 'failed')

export const Payout = Type.Object(
  {
    payout_id: Type.String(),
    kind: literals('withdrawal', 'refund'),
    status: payoutState,
    method: literals('chain', 'manual'),
    tenant_id: nullable(Type.String()),
    wallet_id: nullable(Type.String()),
    settlement_id: nullable(Type.String()),
    to: Type.String(),
    amount: Type.String(),
    amount_usdc: Type.Number(),
    transaction: nullable(Type.String()),
    reason: nullable(Type.String()),
    attempts: Type.Integer(),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { title: 'Payout' },
)

export const WithdrawRequest = Type.Object(
  { to: evmAddress, ...amountFields, idempotency_key },
  { ...strict, title: 'WithdrawRequest' },
)
export const PayoutsQuery = Type.Object(
  { limit, cursor: cursorParameter('pay'), state: Type.Optional(payoutState) },
  strict,
)
export const PayoutsResponse = Type.Object({ payouts: Type.Array(Payout), ...pageFields }, { title: 'PayoutsResponse' })
export const PayoutConfirm = Type.Object(
  {
    transaction: Type.String(pattern('^0x[0-9a-fA-F]{64}$', "a transaction: '0x' and 64 hexadecimal digits")),
    idempotency_key,
  },
  { ...strict, title: 'PayoutConfirm' },
)
export const PayoutCancel = Type.Object({ idempotency_key }, { ...strict, title: 'PayoutCancel' })
