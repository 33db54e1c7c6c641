/** `npm run test:soak -- split-view`: each attack over a thousand seeds, and ten thousand honest logs. */
import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { type AttackName, attacks, expectCaught, expectNothingFalse } from './attacks.ts'
import { createWorld } from './world.ts'

const ATTACK_SEEDS = Number(process.env.SPLIT_VIEW_SEEDS ?? 1_000)
const HONEST_SEEDS = Number(process.env.SPLIT_VIEW_HONEST ?? 10_000)
const HONEST = 'honest'
const names = [...Object.keys(attacks), HONEST]
const seedsOf = (name: string) => (name === HONEST ? HONEST_SEEDS : ATTACK_SEEDS)

async function runSeeds(name: string, first: number, step: number): Promise<string[]> {
  const failures: string[] = []
  for (let seed = first; seed <= seedsOf(name); seed += step) {
    const world = await createWorld(name === HONEST ? 1_000_000 + seed : seed)
    try {
      if (name === HONEST) await expectNothingFalse(world)
      else await expectCaught(name as AttackName, world)
    } catch (error) {
      failures.push((error as Error).message)
    } finally {
      world.remove()
    }
  }
  return failures
}

if (process.send) {
  const [first, step] = process.argv.slice(2).map(Number) as [number, number]
  for (const name of names) process.send({ name, failures: await runSeeds(name, first, step) })
  process.disconnect()
} else {
  const processes = availableParallelism()
  const failures = new Map<string, string[]>(names.map((name) => [name, []]))
  const exits = Array.from({ length: processes }, (_, i) => {
    const child = fork(fileURLToPath(import.meta.url), [String(i + 1), String(processes)])
    child.on('message', ({ name, failures: more }: { name: string; failures: string[] }) => {
      failures.get(name)!.push(...more)
      console.log(`process ${i + 1} of ${processes}: ${name} done, ${more.length} failures`)
    })
    return new Promise<number>((finish) => child.on('exit', (code) => finish(code ?? 1)))
  })
  const codes = await Promise.all(exits)
  for (const [name, list] of failures) {
    console.log(`${name}: ${seedsOf(name)} seeds, ${list.length} ${name === HONEST ? 'false' : 'missed'}`)
    for (const failure of list.slice(0, 5)) console.log(`  ${failure}`)
  }
  process.exit(codes.some((code) => code !== 0) || [...failures.values()].some(({ length }) => length > 0) ? 1 : 0)
}
