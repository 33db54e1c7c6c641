import {
  ApprovalNeeded,
  CountersignError,
  GovernanceRefused,
  PaymentRequired,
  SettlementUnknown,
} from '@countersign/sdk'
import { CliError, EXIT } from './cli-error.ts'
import { UnreadableEvidenceError } from './evidence.ts'
import { safeText } from './output.ts'
import { createProgram } from './program.ts'

/** What went wrong and what to do about it, with the exit code of `--help`. */
function explain(error: unknown): { message: string; exitCode: number } {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof CliError) return { message, exitCode: error.exitCode }
  if (error instanceof SettlementUnknown)
    return {
      message: `${message} Repeat the command with --idempotency-key ${error.idempotencyKey}: the same payment is sent again, never another one.`,
      exitCode: EXIT.unknown,
    }
  if (error instanceof ApprovalNeeded)
    return {
      message: `${message} Approve it with: countersign approvals approve ${error.approvalId}; then repeat the command with --approval ${error.approvalId}.`,
      exitCode: EXIT.no,
    }
  if (error instanceof GovernanceRefused) {
    const change = error.smallestChange.map((step) => JSON.stringify(step)).join(', ')
    return { message: change ? `${message} What would do: ${change}` : message, exitCode: EXIT.no }
  }
  if (error instanceof PaymentRequired)
    return {
      message: `${message} Pay with --wallet, --payer-key-file or COUNTERSIGN_PAYER_KEY.`,
      exitCode: EXIT.failed,
    }
  if (error instanceof CountersignError) return { message: adviseOn(error), exitCode: EXIT.failed }
  const isExpected = error instanceof UnreadableEvidenceError || (error as Error)?.name === 'PaymentRefused'
  return { message: isExpected ? message : String((error as Error)?.stack ?? error), exitCode: EXIT.failed }
}

function adviseOn({ status, message }: CountersignError): string {
  if (status === 0)
    return `${message} Start a service with 'countersign serve', or name one with --url or COUNTERSIGN_URL.`
  if (status === 401)
    return `${message} Give your key with --key-file or COUNTERSIGN_API_KEY; 'countersign keys onboard' makes one.`
  return message
}

const program = createProgram()
const all = [program, ...program.commands, ...program.commands.flatMap(({ commands }) => commands)]
for (const command of all) command.exitOverride((error) => process.exit(error.exitCode === 0 ? EXIT.done : EXIT.failed))

try {
  await program.parseAsync()
} catch (error) {
  const { message, exitCode } = explain(error)
  console.error(safeText(message))
  process.exit(exitCode)
}
