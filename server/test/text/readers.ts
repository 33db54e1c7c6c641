import { createStepCounter } from './count-steps.ts'
import type { HostileText } from './hostile-texts.ts'

const LANES = ['analyst', 'coder', 'comedian', 'researcher', 'strategist', 'support', 'writer', 'default']

/** Everything that reads a caller's text, or a model's. */
export const READERS = [
  ...LANES.map((name) => `lane ${name}`),
  'limits of offline lanes',
  'router',
  'verification of a task',
  'verification of an output',
]

export const SIZES = [1, 2, 4, 8, 16, 32].map((kilobytes) => kilobytes * 1000)

/** The steps may grow a little faster than the text, because sorting does. */
const MAX_GROWTH = 1.2
const MAX_STEPS_PER_CHARACTER = 1_000

/** Loads the readers while their steps are counted. */
export async function openReaders() {
  const counter = createStepCounter(
    (url) => url.includes('/server/src/') || /@babel\/parser|@lezer|pgsql-ast-parser|nearley|moo/.test(url),
  )
  const { runOfflineTask } = await import('../../src/adapters/lanes/offline-task.ts')
  const { findOutOfReach } = await import('../../src/adapters/lanes/offline/out-of-reach.ts')
  const { verifyOutput } = await import('../../src/modules/verification/verification.ts')
  const { extractFeatures } = await import('../../src/modules/routing/features.ts')
  const readers = new Map<string, (text: string) => unknown>([
    ...LANES.map(
      (worker) => [`lane ${worker}`, (task: string) => runOfflineTask({ worker, task, context: [] })] as const,
    ),
    ['limits of offline lanes', findOutOfReach],
    ['router', extractFeatures],
    [
      'verification of a task',
      (task) => verifyOutput({ agentId: 'default', task, output: 'An answer.', mode: 'live' }),
    ],
    [
      'verification of an output',
      (output) =>
        verifyOutput({
          agentId: 'default',
          task: 'Return a bullet list as JSON in at most 10 words',
          output,
          mode: 'live',
        }),
    ],
  ])
  // What is loaded on first use is loaded now.
  for (const read of readers.values())
    await read('Review: \n```js\nf(1)\n```\n```py\nf(1)\n```\n```sql\nselect 1\n```\n```json\n[1]\n```')

  return {
    close: counter.close,
    /** Describes the texts that this reader takes too many steps for. */
    async findSlow(name: string, texts: readonly HostileText[]): Promise<string[]> {
      const slow: string[] = []
      for (const { name: textName, make } of texts) {
        const steps: number[] = []
        for (const size of SIZES) steps.push(await counter.count(() => readers.get(name)!(make(size))))
        const growth = Math.log2(steps.at(-1)! / steps[2]!) / 3
        const perCharacter = Math.round(steps.at(-1)! / SIZES.at(-1)!)
        if (growth > MAX_GROWTH || perCharacter > MAX_STEPS_PER_CHARACTER)
          slow.push(`${textName}: ${steps.join(' ')} steps, growth ${growth.toFixed(2)}, ${perCharacter} a character`)
      }
      return slow
    },
  }
}
