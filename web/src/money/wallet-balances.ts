import type { Wallet } from '@countersign/sdk'
import { formatMicroUsdc, sumMicro, toMicro } from '../usdc-sum.ts'

export const balanceNames = [
  ['available', 'Available'],
  ['reserved', 'Reserved'],
  ['escrowed', 'In escrow'],
  ['pending', 'On its way'],
] as const

export const balanceStats = (wallets: readonly Wallet[]) =>
  balanceNames.map(([key, name]) => ({
    name,
    value: formatMicroUsdc(sumMicro(wallets.map(({ balance }) => toMicro(balance[key])))),
  }))
