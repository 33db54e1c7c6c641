import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import {
  type Abi,
  decodeFunctionResult,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createEmbeddedChain } from '../../src/adapters/chain/embedded-chain.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { createMemoryJournal } from '../contract/memory-journal.ts'
import { startUpstream, type UpstreamReply } from './upstream-server.ts'

/** The embedded chain with the real Uniswap v3 contracts and the test contracts for tokens, feeds and the verifier. */
export type Contract = { address: Hex; abi: Abi }
export type PoolChain = Awaited<ReturnType<typeof startPoolChain>>

const require = createRequire(import.meta.url)
const CONTRACT_NAMES = ['TestToken', 'TestFeed', 'PoolActor', 'BasisVerifier'] as const
type Compiled = Record<(typeof CONTRACT_NAMES)[number], { abi: Abi; bytecode: Hex }>

let compiled: Compiled | undefined

function compile(): Compiled {
  if (compiled) return compiled
  const solc = require('solc') as { compile(input: string): string }
  const source = (name: string) => readFileSync(new URL(`./contracts/${name}.sol`, import.meta.url), 'utf8')
  const output = JSON.parse(
    solc.compile(
      JSON.stringify({
        language: 'Solidity',
        sources: Object.fromEntries(CONTRACT_NAMES.map((name) => [`${name}.sol`, { content: source(name) }])),
        settings: {
          optimizer: { enabled: true, runs: 200 },
          evmVersion: 'cancun',
          outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
        },
      }),
    ),
  )
  const failures = (output.errors ?? []).filter((error: { severity: string }) => error.severity === 'error')
  if (failures.length > 0)
    throw new Error(failures.map((error: { formattedMessage: string }) => error.formattedMessage).join('\n'))
  compiled = Object.fromEntries(
    CONTRACT_NAMES.map((name) => {
      const { abi, evm } = output.contracts[`${name}.sol`][name]
      return [name, { abi, bytecode: `0x${evm.bytecode.object}` }]
    }),
  ) as Compiled
  return compiled
}

const factory = require('@uniswap/v3-core/artifacts/contracts/UniswapV3Factory.sol/UniswapV3Factory.json') as {
  abi: Abi
  bytecode: Hex
}
const pool = require('@uniswap/v3-core/artifacts/contracts/UniswapV3Pool.sol/UniswapV3Pool.json') as { abi: Abi }

export async function startPoolChain(clock: Clock) {
  const chain = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log: { info() {}, warn() {} } })
  const account = privateKeyToAccount(generatePrivateKey())
  let nonce = 0

  const submit = async (transaction: { to?: Hex; data: Hex }) => {
    const raw = await account.signTransaction({
      ...transaction,
      chainId: 8453,
      nonce,
      gas: 14_000_000n,
      gasPrice: 0n,
      type: 'legacy',
    })
    nonce += 1
    const hash = await chain.request('eth_sendRawTransaction', [raw])
    const receipt = (await chain.request('eth_getTransactionReceipt', [hash])) as { status: Hex; blockNumber: Hex }
    if (receipt.status !== '0x1') throw new Error(`The transaction ${hash} was reverted.`)
    return { block: Number(receipt.blockNumber) }
  }
  const deploy = async (artifact: { abi: Abi; bytecode: Hex }, args: unknown[] = []): Promise<Contract> => {
    const address = getContractAddress({ from: account.address, nonce: BigInt(nonce) })
    await submit({ data: encodeDeployData({ ...artifact, args }) })
    return { address: address.toLowerCase() as Hex, abi: artifact.abi }
  }
  const send = ({ address, abi }: Contract, functionName: string, args: unknown[] = []) =>
    submit({ to: address, data: encodeFunctionData({ abi, functionName, args }) })
  const read = async <T>({ address, abi }: Contract, functionName: string, args: unknown[] = []): Promise<T> => {
    const data = encodeFunctionData({ abi, functionName, args })
    const result = (await chain.request('eth_call', [{ to: address, data, from: account.address }, 'latest'])) as Hex
    return decodeFunctionResult({ abi, functionName, data: result }) as T
  }

  const contracts = compile()
  const poolFactory = await deploy(factory)
  const rpcServer = await startUpstream(
    ({ body }): UpstreamReply => ({
      raw: async (_request, response) => {
        const batch = JSON.parse(body) as { id: number; method: string; params: unknown[] }[]
        const results = await Promise.all(
          batch.map(({ id, method, params }) =>
            chain.request(method, params).then(
              (result) => ({ jsonrpc: '2.0', id, result }),
              (error: Error) => ({ jsonrpc: '2.0', id, error: { code: -32000, message: error.message } }),
            ),
          ),
        )
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(results))
      },
    }),
  )

  return {
    rpcUrl: rpcServer.url,
    account,
    deploy,
    send,
    read,
    deployTest: (name: keyof Compiled, args: unknown[] = []) => deploy(contracts[name], args),
    /** Two tokens whose addresses are in the required order, because a pool sorts its tokens by address. */
    async tokens(decimals: [first: number, second: number], firstIsToken0: boolean): Promise<[Contract, Contract]> {
      for (let attempts = 0; attempts < 20; attempts += 1) {
        const first = await deploy(contracts.TestToken, [decimals[0]])
        const second = await deploy(contracts.TestToken, [decimals[1]])
        if (first.address < second.address === firstIsToken0) return [first, second]
      }
      throw new Error('No two token addresses came in the required order.')
    },
    async createPool(a: Contract, b: Contract, fee: number, sqrtPriceX96: bigint): Promise<Contract> {
      await send(poolFactory, 'createPool', [a.address, b.address, fee])
      const address = await read<Hex>(poolFactory, 'getPool', [a.address, b.address, fee])
      const newPool = { address: address.toLowerCase() as Hex, abi: pool.abi }
      await send(newPool, 'initialize', [sqrtPriceX96])
      return newPool
    },
    allowFee: (fee: number, tickSpacing: number) => send(poolFactory, 'enableFeeAmount', [fee, tickSpacing]),
    async close() {
      await rpcServer.close()
      await chain.close()
    },
  }
}
