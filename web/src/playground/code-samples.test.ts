import { expect, test } from 'vitest'
import { codeSamples, type SampleCall } from './code-samples.ts'

const call: SampleCall = {
  baseUrl: 'https://countersign.example',
  task: `It's $HOME; rm -rf / "quoted" \`x\`\nnext`,
  agentId: undefined,
  walletId: 'wal_1',
  hasDevelopmentChain: false,
}
const textOf = (name: string, change: Partial<SampleCall> = {}) =>
  codeSamples({ ...call, ...change }).find((sample) => sample.name === name)!.text

test('a task is quoted for the shell, whatever it contains', () => {
  expect(textOf('CLI')).toContain(`countersign run 'It'\\''s $HOME; rm -rf / "quoted" \`x\`\nnext'`)
  const [, body] = /-d '(.*)'$/s.exec(textOf('curl'))!
  expect(JSON.parse(body!.replaceAll(`'\\''`, "'"))).toEqual({ task: call.task, payment: { wallet_id: 'wal_1' } })
})

test('a call from a wallet names the wallet and a key; one by x402 names neither', () => {
  for (const name of ['curl', 'SDK', 'CLI', 'MCP']) {
    expect(textOf(name)).toContain('wal_1')
    expect(textOf(name, { walletId: undefined })).not.toMatch(/wal_1|API_KEY/)
  }
})

test('the examples never permit a development chain where the money is real', () => {
  expect(textOf('SDK', { walletId: undefined, hasDevelopmentChain: true })).toContain('allowDevelopmentChain')
  expect(textOf('SDK', { walletId: undefined })).not.toContain('allowDevelopmentChain')
})
