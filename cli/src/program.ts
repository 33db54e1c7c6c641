import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { pricingCommand, routeCommand } from './commands/catalog.ts'
import { completionCommand } from './commands/completion.ts'
import { doctorCommand } from './commands/doctor.ts'
import { approvalsCommand, budgetsCommand, policiesCommand } from './commands/governance.ts'
import { initCommand } from './commands/init.ts'
import { keysCommand } from './commands/keys.ts'
import { mcpCommand } from './commands/mcp.ts'
import { monitorCommand } from './commands/monitor.ts'
import { basisCommand, receiptsCommand, spendCommand } from './commands/receipts.ts'
import { loopCommand, runCommand } from './commands/run.ts'
import {
  benchmarkCommand,
  demoCommand,
  ledgerCommand,
  migrateCommand,
  serveCommand,
  workCommand,
} from './commands/server.ts'
import { verifyCommand } from './commands/verify.ts'
import { webhooksCommand } from './commands/webhooks.ts'
import { witnessCommand } from './commands/witness.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

const HELP = `
Settings (environment variables):
  COUNTERSIGN_URL        the service; else the one started from this folder, else http://127.0.0.1:4020
  COUNTERSIGN_API_KEY    API key of your tenant
  COUNTERSIGN_PAYER_KEY  private key that pays by x402
  NO_COLOR               no colour on a terminal

Exit codes:
  0  done, valid
  1  the answer is no: not valid, refused, failed, differences found
  2  it could not be done or checked: wrong usage, unreadable file, service not reachable
  3  it is not known whether a payment counted: repeat with the same --idempotency-key`

export function createProgram(): Command {
  const program = new Command('countersign')
    .description('Execution, payment and attestation for autonomous agents')
    .version(version)
    .addHelpText('after', HELP)
  const groups: Record<string, Command[]> = {
    'Run the server:': [
      demoCommand(),
      initCommand(),
      serveCommand(),
      workCommand(),
      migrateCommand(),
      ledgerCommand(),
      benchmarkCommand(),
    ],
    'Use a service:': [
      doctorCommand(),
      pricingCommand(),
      routeCommand(),
      runCommand(),
      loopCommand(),
      basisCommand(),
      mcpCommand(),
    ],
    'Govern:': [
      keysCommand(),
      budgetsCommand(),
      policiesCommand(),
      approvalsCommand(),
      spendCommand(),
      webhooksCommand(),
    ],
    'Prove:': [receiptsCommand(), verifyCommand(), monitorCommand(), witnessCommand()],
  }
  for (const [heading, commands] of Object.entries(groups))
    for (const command of commands) program.addCommand(command.helpGroup(heading))
  return program.addCommand(completionCommand(program).helpGroup('Shell:'))
}
