/**
 * One attack in a process of its own, so that its work does not delay the clock of the victim.
 * Arguments: URL, index of the attack, seconds, source address. Prints how many answers had which status.
 */
import { setPriority } from 'node:os'
import { attacks, createAttacker } from './attacks.ts'

const [url, index, seconds, address] = process.argv.slice(2) as [string, string, string, string]
/** An attacker has machines of its own; on this one it shall not compete with the service for the processor. */
setPriority(19)
let endsAt = Number.POSITIVE_INFINITY
const statuses: Record<string, number> = {}
const attacker = await createAttacker(url, address, () => performance.now() > endsAt)
process.stdout.write('ready\n')
endsAt = performance.now() + Number(seconds) * 1000
let bytes = 0
const send = attacker.send
attacker.send = async (...request) => {
  const answer = await send(...request)
  statuses[answer.status] = (statuses[answer.status] ?? 0) + 1
  bytes = Math.max(bytes, answer.bytes)
  return answer
}
// Requests that are still under way hold the attack open; they are left alone some seconds after its end.
setTimeout(() => finish(), Number(seconds) * 1000 + 2000).unref()
await attacks[Number(index)]!.run(attacker)
finish()

function finish() {
  process.stdout.write(`${JSON.stringify({ statuses, largestAnswer: bytes })}\n`)
  process.exit(0)
}
