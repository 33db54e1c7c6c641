import { Command } from 'commander'
import { CannotVerify } from './evidence.ts'
import { benchmarkCommand, ledgerCommand } from './operate.ts'
import { verifyCommand } from './verify.ts'

/** 0: it holds. 1: it does not. 2: it could not be looked at. */
const program = new Command('countersign')
  .description('Execution, payment and attestation for autonomous agents')
  .addCommand(verifyCommand())
  .addCommand(ledgerCommand())
  .addCommand(benchmarkCommand())

for (const command of [program, ...program.commands, ...program.commands.flatMap((one) => one.commands)])
  command.exitOverride((refused) => process.exit(refused.exitCode === 0 ? 0 : 2))

try {
  await program.parseAsync()
} catch (error) {
  console.error(error instanceof CannotVerify ? error.message : error)
  process.exit(2)
}
