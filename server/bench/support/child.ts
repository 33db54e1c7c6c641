import { fork } from 'node:child_process'
import { join } from 'node:path'

export type Child<Ready> = { pid: number; ready: Ready; call<Answer>(message: unknown): Promise<Answer>; stop(): void }

/** Starts a file of this folder as a process of its own, sends it its input and waits for its answer. */
export async function startChild<Ready>(file: string, input: unknown): Promise<Child<Ready>> {
  const child = fork(join(import.meta.dirname, file), {
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const call = <Answer>(message: unknown) =>
    new Promise<Answer>((resolve, reject) => {
      const end = (code: number | null) => reject(new Error(`${file} ended (${code}).`))
      child.once('exit', end)
      child.once('message', (answer: { result?: Answer; error?: string }) => {
        child.off('exit', end)
        if (answer.error === undefined) resolve(answer.result as Answer)
        else reject(new Error(`${file} failed: ${answer.error}`))
      })
      child.send(message as object)
    })
  const ready = await call<Ready>(input)
  return { pid: child.pid!, ready, call, stop: () => void (child.connected && child.disconnect()) }
}

/** The other side: answers every message, and ends when the parent disconnects. */
export function answerParent(answer: (message: never) => Promise<unknown>) {
  process.on('message', async (message) => {
    try {
      process.send!({ result: await answer(message as never) })
    } catch (error) {
      process.send!({ error: (error as Error).stack ?? String(error) })
    }
  })
  process.once('disconnect', () => process.exit(0))
}
