import { recoverTypedDataAddress } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { expect, test } from 'vitest'
import { connectAccount, readUsdcMicro, serializeTypedData, WalletRefused } from './injected-account.ts'

const account = privateKeyToAccount(generatePrivateKey())
const typedData = {
  domain: { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: account.address },
  types: {
    TransferWithAuthorization: [
      { name: 'from', type: 'address' },
      { name: 'value', type: 'uint256' },
    ],
  },
  primaryType: 'TransferWithAuthorization',
  message: { from: account.address, value: 2n ** 200n },
}

type Answers = Record<string, unknown>
/** A wallet with fixed answers; an answer that is an error is thrown. */
const walletWith = (answers: Answers) => {
  const methods: string[] = []
  const provider = {
    request: async ({ method }: { method: string }) => {
      methods.push(method)
      if (answers[method] instanceof Error) throw answers[method]
      return answers[method]
    },
  }
  return { wallet: { name: 'Wallet', provider }, methods }
}
const declined = Object.assign(new Error('no'), { code: 4001 })
const ready = { eth_requestAccounts: [account.address], eth_chainId: '0x2105' }

test('typed data reaches the wallet as JSON that gives the same signature, with the type of its domain', async () => {
  const { types, ...rest } = JSON.parse(serializeTypedData(typedData))
  expect(types.EIP712Domain.map(({ name }: { name: string }) => name)).toEqual([
    'name',
    'version',
    'chainId',
    'verifyingContract',
  ])
  expect(rest.message.value).toBe((2n ** 200n).toString())
  const signature = await account.signTypedData({
    ...rest,
    types: { TransferWithAuthorization: types.TransferWithAuthorization },
  })
  expect(
    await recoverTypedDataAddress({
      ...(typedData as never as Parameters<typeof recoverTypedDataAddress>[0]),
      signature,
    }),
  ).toBe(account.address)
})

test.each<[string, Answers, WalletRefused['reason']]>([
  ['declines to connect', { eth_requestAccounts: declined }, 'not_connected'],
  ['has no account', { eth_requestAccounts: [] }, 'not_connected'],
  ['names something that is no address', { eth_requestAccounts: ['<img src=x>'] }, 'not_connected'],
  ['is on another network', { ...ready, eth_chainId: '0x1', wallet_switchEthereumChain: declined }, 'wrong_network'],
  [
    'says that it switched and did not',
    { ...ready, eth_chainId: '0x1', wallet_switchEthereumChain: null },
    'wrong_network',
  ],
  ['does not say its network', { ...ready, eth_chainId: undefined }, 'wrong_network'],
])('a wallet that %s is refused before anything is signed', async (_, answers, reason) => {
  const { wallet, methods } = walletWith(answers)
  const refusal = await connectAccount(wallet).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(WalletRefused)
  expect(refusal).toMatchObject({ reason, message: expect.stringContaining('Nothing was charged') })
  expect(methods).not.toContain('eth_signTypedData_v4')
})

test.each<[string, unknown, WalletRefused['reason']]>([
  ['declines', declined, 'declined'],
  ['fails', new Error('locked'), 'failed'],
  ['answers without a signature', null, 'failed'],
  ['answers with a short signature', '0x00', 'failed'],
])('a wallet that %s when asked to sign is refused', async (_, answer, reason) => {
  const { wallet } = walletWith({ ...ready, eth_signTypedData_v4: answer })
  const { signTypedData } = await connectAccount(wallet)
  await expect(signTypedData(typedData)).rejects.toMatchObject({ name: 'WalletRefused', reason })
})

test('a wallet that changes its network after it was connected is not asked to sign', async () => {
  const answers: Answers = { ...ready, wallet_switchEthereumChain: declined }
  const { wallet, methods } = walletWith(answers)
  const { signTypedData } = await connectAccount(wallet)
  answers.eth_chainId = '0x1'
  await expect(signTypedData(typedData)).rejects.toMatchObject({ reason: 'wrong_network' })
  expect(methods).not.toContain('eth_signTypedData_v4')
})

test('a balance that cannot be read is unknown, not zero', async () => {
  const read = (answer: unknown) => readUsdcMicro(async () => answer, account.address)
  expect(await read(`0x${'0'.repeat(62)}ff`)).toBe(255n)
  expect([await read('0x'), await read(null), await read({})]).toEqual([undefined, undefined, undefined])
  const failing = () => Promise.reject(new Error('offline'))
  expect(await readUsdcMicro(failing, account.address)).toBeUndefined()
})
