import { appendFileSync } from 'node:fs'
import { openReceiver } from './receiver.ts'

/**
 * A receiver that fails and drops connections at random, and writes the messages it received to a file. Of ten thousand
 * messages one would fail nine times by chance and be given up, so none fails more often than `MAX_FAILURES`.
 */
const MAX_FAILURES = 4
const failures = new Map<string, number>()
const [port, file, seed] = process.argv.slice(2)
let state = Number(seed)
const random = () => {
  state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
  return state / 2_147_483_648
}

const receiver = await openReceiver(({ headers, body }, response, request) => {
  const id = String(headers['webhook-id'])
  const failed = failures.get(id) ?? 0
  const chance = failed < MAX_FAILURES ? random() : 1
  if (chance < 0.15) failures.set(id, failed + 1)
  if (chance < 0.1) {
    response.statusCode = chance < 0.05 ? 500 : 429
    response.end()
  } else if (chance < 0.13) {
    request.socket.destroy()
  } else {
    // Written before it is acknowledged; sometimes the acknowledgement is lost.
    const webhookHeaders = Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('webhook-')))
    appendFileSync(file!, `${JSON.stringify({ headers: webhookHeaders, body })}\n`)
    if (chance < 0.15) request.socket.destroy()
    else response.end()
  }
}, Number(port))
process.send!({ port: receiver.port })
