import { expect, test } from 'vitest'
import { accountName } from './account-name.ts'

test('accounts of wallets have the name of the wallet, others their own', () => {
  const wallets = [{ wallet_id: 'wal_1', name: 'Agents' }]
  expect(accountName('liabilities:wallet:wal_1', wallets)).toBe('wallet Agents')
  expect(accountName('liabilities:escrow:wal_1', wallets)).toBe('escrow of Agents')
  expect(accountName('liabilities:wallet:wal_2', wallets)).toBe('wallet wal_2')
  expect(accountName('revenue:lane:writer-v1', wallets)).toBe('lane writer-v1')
  expect(accountName('assets:chain:usdc', wallets)).toBe('chain usdc')
  expect(accountName('liabilities:refunds', wallets)).toBe('refunds')
  expect(accountName('odd', wallets)).toBe('odd')
})
