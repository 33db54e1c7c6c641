/**
 * Compiles the contracts beside this file and writes their artifacts: `node launch.mjs server/contracts/compile.ts`.
 * The artifacts are committed, so that running the server needs no compiler; a test compiles again and compares.
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'

export const CONTRACTS = ['DevUSDC', 'DevUSDCLoader', 'Multicall3', 'TestWallet', 'TestWalletFactory'] as const

export type Artifact = {
  contractName: string
  compiler: string
  sourceHash: string
  abi: unknown[]
  bytecode: `0x${string}`
  deployedBytecode: `0x${string}`
}

type SolcOutput = {
  errors?: { severity: string; formattedMessage: string }[]
  contracts: Record<
    string,
    Record<
      string,
      { abi: unknown[]; evm: { bytecode: { object: string }; deployedBytecode: { object: string } } } | undefined
    >
  >
}

const fileUrl = (file: string) => new URL(file, import.meta.url)

export function compileContracts(): Artifact[] {
  const solc = createRequire(import.meta.url)('solc') as { compile(input: string): string; version(): string }
  const sources = Object.fromEntries(
    CONTRACTS.map((name) => [`${name}.sol`, { content: readFileSync(fileUrl(`${name}.sol`), 'utf8') }]),
  )
  const input = {
    language: 'Solidity',
    sources,
    settings: {
      optimizer: { enabled: true, runs: 1_000_000 },
      evmVersion: 'cancun',
      // Without the metadata hash the bytecode depends on the code alone, not on comments or file names.
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object', 'evm.deployedBytecode.object'] } },
    },
  }
  const output = JSON.parse(solc.compile(JSON.stringify(input))) as SolcOutput
  const failures = (output.errors ?? []).filter((error) => error.severity === 'error')
  if (failures.length > 0) throw new Error(failures.map((failure) => failure.formattedMessage).join('\n'))
  return CONTRACTS.map((name) => {
    const compiled = output.contracts[`${name}.sol`]?.[name]
    if (!compiled) throw new Error(`The compiler returned no output for ${name}.`)
    return {
      contractName: name,
      compiler: solc.version(),
      sourceHash: `sha256:${createHash('sha256').update(sources[`${name}.sol`]!.content).digest('hex')}`,
      abi: compiled.abi,
      bytecode: `0x${compiled.evm.bytecode.object}`,
      deployedBytecode: `0x${compiled.evm.deployedBytecode.object}`,
    }
  })
}

export const formatArtifact = (artifact: Artifact) => `${JSON.stringify(artifact, null, 2)}\n`

if (import.meta.main) {
  for (const artifact of compileContracts()) {
    writeFileSync(fileUrl(`${artifact.contractName}.json`), formatArtifact(artifact))
    console.log(`${artifact.contractName}.json: ${(artifact.deployedBytecode.length - 2) / 2} bytes of code`)
  }
}
