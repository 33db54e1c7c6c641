import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * A port that is free now and stays so until a test uses it: the system hands out ports from 32768 on to whoever listens on
 * port 0, this one is below them.
 */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    await new Promise((closed) => server.close(closed))
    return port
  }
}
