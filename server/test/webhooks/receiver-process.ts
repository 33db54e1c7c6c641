import { appendFileSync } from 'node:fs'
import { openReceiver } from './receiver.ts'

/** A target that is often ill: it fails, hangs up and answers late at random, and writes down what it took. */
const [port, file, seed] = process.argv.slice(2)
let state = Number(seed)
const random = () => {
  state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
  return state / 2_147_483_648
}

const receiver = await openReceiver(({ headers, body }, response, request) => {
  const luck = random()
  if (luck < 0.1) {
    response.statusCode = luck < 0.05 ? 500 : 429
    response.end()
  } else if (luck < 0.13) {
    request.socket.destroy()
  } else {
    // Written before it is acknowledged; now and then the acknowledgement is lost all the same.
    const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('webhook-')))
    appendFileSync(file!, `${JSON.stringify({ headers: kept, body })}\n`)
    if (luck < 0.15) request.socket.destroy()
    else response.end()
  }
}, Number(port))
process.send!({ port: receiver.port })
