import { writeFileSync } from 'node:fs'
import type { ApiRequest } from '@countersign/sdk'
import { Command } from 'commander'
import { list, wholeNumber } from '../arguments.ts'
import { CliError } from '../cli-error.ts'
import { collect, formatFields, formatTable, show } from '../output.ts'
import { connect, type ServiceOptions, serviceCommand } from '../service.ts'

export function receiptsCommand(): Command {
  const receipts = new Command('receipts').description('signed receipts')
  receipts.addCommand(
    serviceCommand('list')
      .description('receipts, newest first')
      .option('--run <run_id>', 'of this run')
      .option('--limit <count>', 'how many', wholeNumber, 20)
      .action(async (options: ServiceOptions & { run?: string; limit: number }) => {
        const query = options.run === undefined ? {} : { run_id: options.run }
        show(await collect(connect(options).receipts.list(query), options.limit), options, (items) =>
          formatTable(items, [
            ['RECEIPT', ({ receipt_id }) => receipt_id],
            ['KIND', ({ kind }) => kind],
            ['LANE', ({ agent_id }) => agent_id],
            ['ISSUED', ({ issued_at }) => issued_at],
            ['LOG', ({ log }) => (log as { index?: number } | null)?.index],
          ]),
        )
      }),
  )
  receipts.addCommand(
    serviceCommand('get')
      .description('one receipt as JSON')
      .argument('<receipt_id>')
      .option('--out <file>', 'write it to this file')
      .action(async (id: string, options: ServiceOptions & { out?: string }) => {
        const text = JSON.stringify(await connect(options).get('/api/receipts/{id}', { path: { id } }), null, 2)
        if (options.out === undefined) return console.log(text)
        writeFile(options.out, text)
        console.error(`Written to ${options.out}. Verify it: countersign verify ${options.out}`)
      }),
  )
  receipts.addCommand(
    serviceCommand('proof')
      .description(
        'a tlog-proof file: the receipt, its inclusion and a cosigned checkpoint, which verifies against a policy',
      )
      .argument('<receipt_id>')
      .option('--newest', 'under the newest checkpoint, whether witnesses have cosigned it or not')
      .option('--out <file>', 'write it to this file')
      .action(async (id: string, options: ServiceOptions & { out?: string; newest?: boolean }) => {
        const query = { format: 'tlog-proof', witnessed: options.newest !== true } as const
        const text = String(await connect(options).get('/api/receipts/{id}/proof', { path: { id }, query }))
        if (options.out === undefined) return void process.stdout.write(text)
        writeFile(options.out, text, '')
        console.error(`Written to ${options.out}. Verify it: countersign verify ${options.out} --policy <file>`)
      }),
  )
  return receipts
}

function writeFile(file: string, text: string, end = '\n') {
  try {
    writeFileSync(file, `${text}${end}`)
  } catch (cause) {
    throw new CliError(`${file} cannot be written: ${(cause as Error).message}`)
  }
}

type SpendQuery = NonNullable<ApiRequest<'/api/spend', 'get'>['query']>

export const spendCommand = () =>
  serviceCommand('spend')
    .description('what was spent, by day, spender, team, lane, merchant, tag, key or rail')
    .option('--by <group>', 'what to group by, separated by commas', list, [] as string[])
    .option('--from <time>', 'ISO 8601')
    .option('--to <time>', 'ISO 8601')
    .option('--tag <name>', 'the tag to group by')
    .action(async (options: ServiceOptions & { by: string[]; from?: string; to?: string; tag?: string }) => {
      const groupBy = options.by.length > 0 ? options.by : ['lane']
      const query = { group_by: groupBy.join(','), from: options.from, to: options.to, tag: options.tag }
      const spend = await connect(options).get('/api/spend', { query: query as unknown as SpendQuery })
      show(spend, options, ({ from, to, totals, groups, group_by }) =>
        [
          formatFields([
            ['from', from],
            ['to', to],
            ['spent', `${totals.amount_usdc} USDC in ${totals.count} payments`],
          ]),
          formatTable(
            groups,
            [
              ...group_by.map(
                (name) =>
                  [name.toUpperCase(), (group: Record<string, unknown>) => group[name]] as [
                    string,
                    (group: object) => unknown,
                  ],
              ),
              ['USDC', (group) => (group as { amount_usdc: number }).amount_usdc],
              ['PAYMENTS', (group) => (group as { count: number }).count],
            ],
            'Nothing was spent.',
          ),
        ].join('\n\n'),
      )
    })

export function basisCommand(): Command {
  const basis = new Command('basis').description('measurements of tokenised equities')
  basis.addCommand(
    serviceCommand('symbols')
      .description('what is covered')
      .action(async (options: ServiceOptions) =>
        show(await connect(options).get('/api/basis/v1/symbols'), options, ({ symbols }) =>
          formatTable(symbols, [
            ['SYMBOL', ({ symbol }) => symbol],
            ['UNDERLYING', ({ underlying }) => underlying],
            ['ISSUER', ({ issuer }) => issuer],
            ['CHAINS', ({ chains }) => chains.join(',')],
          ]),
        ),
      ),
  )
  basis.addCommand(
    serviceCommand('board')
      .description('all symbols by their window score')
      .option('--chain <chain>', 'only this chain')
      .action(async (options: ServiceOptions & { chain?: string }) =>
        show(
          await connect(options).get('/api/basis/v1/board', { query: { chain: options.chain } }),
          options,
          ({ status, rows }) =>
            [
              `status ${status}`,
              formatTable(rows, [
                ['#', ({ rank }) => rank],
                ['SYMBOL', ({ symbol }) => symbol],
                ['CHAIN', ({ chain }) => chain],
                ['BASIS BPS', ({ basis_bps }) => basis_bps],
                ['WINDOW', ({ window_status }) => window_status],
                ['SCORE', ({ window_score }) => window_score],
              ]),
            ].join('\n'),
        ),
      ),
  )
  basis.addCommand(
    serviceCommand('quote')
      .description('the basis of one symbol')
      .argument('<symbol>')
      .option('--chain <chain>', 'the chain, when there are several')
      .action(async (symbol: string, options: ServiceOptions & { chain?: string }) => {
        const query = { chain: options.chain }
        const quote = await connect(options).get('/api/basis/v1/quote/{symbol}', { path: { symbol }, query })
        show(quote, options, (value) =>
          formatFields([
            ['symbol', `${value.symbol} on ${value.chain}`],
            ['wrapper', value.wrapper_price],
            ['reference', `${value.reference_price} (${value.reference_source})`],
            ['basis', `${value.basis_bps} bps`],
            ['market', value.underlying_state],
            ['as of', value.as_of],
            ['source', value.source],
          ]),
        )
      }),
  )
  basis.addCommand(
    serviceCommand('attestation')
      .description('a signed attestation as JSON, for `countersign verify`')
      .argument('<symbol>')
      .option('--chain <chain>', 'the chain, when there are several')
      .option('--out <file>', 'write it to this file')
      .action(async (symbol: string, options: ServiceOptions & { chain?: string; out?: string }) => {
        const query = { chain: options.chain }
        const attestation = await connect(options).get('/api/basis/v1/attestation/{symbol}', {
          path: { symbol },
          query,
        })
        const text = JSON.stringify(attestation, null, 2)
        if (options.out === undefined) return console.log(text)
        writeFile(options.out, text)
      }),
  )
  return basis
}
