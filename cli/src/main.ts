import { Command } from 'commander'
import { CliError } from './cli-error.ts'
import {
  benchmarkCommand,
  demoCommand,
  ledgerCommand,
  migrateCommand,
  serveCommand,
  workCommand,
} from './commands/server.ts'
import { verifyCommand } from './commands/verify.ts'
import { UnreadableEvidenceError } from './evidence.ts'

/** Exit codes: 0 valid, 1 not valid, 2 could not be checked. */
const program = new Command('countersign')
  .description('Execution, payment and attestation for autonomous agents')
  .addCommand(serveCommand())
  .addCommand(workCommand())
  .addCommand(migrateCommand())
  .addCommand(demoCommand())
  .addCommand(verifyCommand())
  .addCommand(ledgerCommand())
  .addCommand(benchmarkCommand())

for (const command of [program, ...program.commands, ...program.commands.flatMap((command) => command.commands)])
  command.exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))

try {
  await program.parseAsync()
} catch (error) {
  console.error(error instanceof UnreadableEvidenceError || error instanceof CliError ? error.message : error)
  process.exit(2)
}
