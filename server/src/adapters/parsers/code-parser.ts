import { extname } from 'node:path'
import type { CodeBlock } from '../../modules/verification/code.ts'
import { createThreadPool } from '../../platform/thread-pool.ts'

/** A parser that takes longer has met a text that is made to hold it up; then the code counts as not checked. */
const DEADLINE_MS = 2_000
const MAX_WAITING = 256

/** Parses code in a thread, because the parsers are not ours and cannot be stopped. The thread starts with the first block. */
export function createCodeParser() {
  const pool = createThreadPool<readonly CodeBlock[], string[]>({
    // `.ts` in the repository, `.js` in the npm package.
    module: new URL(`./code-parser-thread${extname(import.meta.filename)}`, import.meta.url),
    maxThreads: 1,
    maxWaiting: MAX_WAITING,
    deadlineMs: DEADLINE_MS,
  })
  return {
    /** One message for each block that does not parse. */
    async parse(blocks: readonly CodeBlock[]): Promise<string[]> {
      const result = await pool.run(blocks)
      return result.state === 'done' ? result.output : []
    },
    close: () => pool.close(),
  }
}
