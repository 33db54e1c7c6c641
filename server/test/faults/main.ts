/** `npm run test:soak -- faults --minutes 15 --seed 1`: faults of every part under load. */
import { parseArgs } from 'node:util'
import { runFaultSoak } from './soak.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '4' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    clients: { type: 'string', default: '2' },
  },
})
const startedAt = performance.now()
const report = await runFaultSoak({
  seed: Number(values.seed),
  seconds: Number(values.minutes) * 60,
  clientsPerKind: Number(values.clients),
  ...(values.only && { only: values.only.split(',') }),
  // The fourth attempt at a webhook comes ten minutes after the third.
  settleSeconds: 900,
  log: (line) => console.log(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)} s  ${line}`),
})

const byFault = new Map<string, { rounds: number; longest: number }>()
for (const { name, recoverySeconds } of report.rounds)
  for (const fault of name.split(' + ')) {
    const { rounds, longest } = byFault.get(fault) ?? { rounds: 0, longest: 0 }
    byFault.set(fault, { rounds: rounds + 1, longest: Math.max(longest, recoverySeconds) })
  }
console.log('\nfault, rounds, longest recovery in seconds')
for (const [fault, { rounds, longest }] of [...byFault].sort())
  console.log(`  ${fault.padEnd(24)} ${String(rounds).padStart(3)} ${longest.toFixed(1).padStart(6)}`)
console.log('\nanswers')
for (const [kind, counts] of Object.entries(report.answers))
  console.log(`  ${kind.padEnd(12)} ${JSON.stringify(counts)}`)
const { counts, longestRecovery } = report
console.log(
  `\nseed ${values.seed}, ${values.minutes} minutes, ${report.rounds.length} rounds of faults: ${counts.acknowledged} runs acknowledged, ` +
    `${counts.uncharged} ended without a charge, ${counts.endedPreauths} pre-authorisations closed, ` +
    `${counts.webhooks} webhooks delivered by ${counts.webhookRequests} requests, ${counts.looksAtLog} looks at the log`,
)
console.log(
  `longest recovery: ${longestRecovery?.recoverySeconds} s after ${longestRecovery?.name}; most memory of a process: ${report.maxRssMegabytes} MB`,
)
for (const problem of report.problems) console.log(`PROBLEM ${problem}`)
console.log(
  report.problems.length === 0
    ? 'nothing lost, nothing charged twice, nothing stuck'
    : `${report.problems.length} problems`,
)
process.exit(report.problems.length === 0 ? 0 : 1)
