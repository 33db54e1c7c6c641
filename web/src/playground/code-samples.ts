/** The call that the playground makes, to be shown as a program. */
export type SampleCall = {
  baseUrl: string
  task: string
  agentId: string | undefined
  /** The wallet that pays; undefined for a payment by x402. */
  walletId: string | undefined
  hasDevelopmentChain: boolean
}

export type CodeSample = { name: string; text: string; note: string }

const quoteForShell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

export function codeSamples(call: SampleCall): CodeSample[] {
  const { baseUrl, task, agentId, walletId } = call
  const body = {
    task,
    ...(agentId !== undefined && { agent_id: agentId }),
    ...(walletId !== undefined && { payment: { wallet_id: walletId } }),
  }
  return [
    {
      name: 'curl',
      text: [
        `curl ${quoteForShell(`${baseUrl}/api/run`)}`,
        ...(walletId === undefined ? [] : ['-H "X-API-Key: $COUNTERSIGN_API_KEY"']),
        '-H "Idempotency-Key: $(openssl rand -hex 16)"',
        "-H 'Content-Type: application/json'",
        `-d ${quoteForShell(JSON.stringify(body))}`,
      ].join(' \\\n  '),
      note:
        walletId === undefined
          ? 'Answers 402 with the terms: curl cannot sign. The SDK and the CLI sign and send it again.'
          : 'Takes the money from the wallet. COUNTERSIGN_API_KEY is your key.',
    },
    {
      name: 'SDK',
      text: sdkSample(call),
      note: 'npm install @countersign/sdk. It pays once, whatever happens, and verifies the receipt.',
    },
    {
      name: 'CLI',
      text: [
        `countersign run ${quoteForShell(task)}`,
        `--url ${quoteForShell(baseUrl)}`,
        ...(agentId === undefined ? [] : [`--agent ${quoteForShell(agentId)}`]),
        walletId === undefined ? '--payer-key-file payer.key' : `--wallet ${quoteForShell(walletId)}`,
      ].join(' \\\n  '),
      note:
        walletId === undefined
          ? 'npm install -g countersign. payer.key holds the private key that pays.'
          : 'npm install -g countersign. The key is read from COUNTERSIGN_API_KEY.',
    },
    {
      name: 'MCP',
      text: JSON.stringify(
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run', arguments: body } },
        null,
        2,
      ),
      note: `The tool run at ${baseUrl}/mcp${walletId === undefined ? '; it is paid with an x402 payment in _meta' : ', with your key as X-API-Key'}.`,
    },
  ]
}

function sdkSample({ baseUrl, task, agentId, walletId, hasDevelopmentChain }: SampleCall): string {
  const request = [
    `task: ${JSON.stringify(task)}`,
    ...(agentId === undefined ? [] : [`agent_id: ${JSON.stringify(agentId)}`]),
  ]
  const payer =
    walletId === undefined
      ? ['account', ...(hasDevelopmentChain ? ['allowDevelopmentChain: true'] : [])]
      : ['apiKey: process.env.COUNTERSIGN_API_KEY', `walletId: ${JSON.stringify(walletId)}`]
  return [
    `import { ${walletId === undefined ? 'accountFromKey, ' : ''}createClient } from '@countersign/sdk'`,
    '',
    ...(walletId === undefined ? ['const account = await accountFromKey(process.env.PAYER_PRIVATE_KEY)'] : []),
    'const client = createClient({',
    `  baseUrl: ${JSON.stringify(baseUrl)},`,
    ...payer.map((line) => `  ${line},`),
    '})',
    `const { output, receipt } = await client.run({ ${request.join(', ')} })`,
    'console.log(output, receipt.receipt_id, receipt.verified)',
  ].join('\n')
}
