/**
 * Executes the steps of deploy/Dockerfile without a container engine: each stage is a clean folder, RUN is a command in it,
 * and the service is started as a user who owns nothing there. Needs root, for that user.
 *
 * Run: npm run test:soak -- image
 * What this cannot show: that the base image has what the steps use, and that the layers can be pushed.
 */
import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startEmbeddedPostgres } from '../../src/adapters/postgres/embedded.ts'
import { createLog } from '../../src/platform/log.ts'
import { hostPath } from '../packages/packed.ts'

const NOBODY = 65_534
const START_SECONDS = 60
const repository = resolve(import.meta.dirname, '../../..')
const root = mkdtempSync(join(tmpdir(), 'countersign-image-'))
chmodSync(root, 0o755)

/** A stage of the image: a folder that stands for its root. */
type Stage = { folder: string; workdir: string; env: Record<string, string>; command: string[] }

const environment = { PATH: hostPath(), HOME: process.env.HOME! }

function buildImage(): Stage {
  const lines = readFileSync(join(repository, 'deploy/Dockerfile'), 'utf8').split('\n')
  const stages = new Map<string, Stage>()
  let stage!: Stage
  const inStage = (path: string) => join(stage.folder, path.startsWith('/') ? path : join(stage.workdir, path))
  for (const line of lines) {
    const [instruction, ...words] = line.trim().split(/\s+/)
    const text = words.join(' ')
    if (!instruction || instruction.startsWith('#')) continue
    console.log(`${instruction} ${text}`)
    if (instruction === 'FROM') {
      const name = words[2] ?? 'image'
      stage = { folder: join(root, name), workdir: '/', env: {}, command: [] }
      stages.set(name, stage)
    } else if (instruction === 'WORKDIR') {
      stage.workdir = text
      mkdirSync(inStage(text), { recursive: true })
    } else if (instruction === 'ENV') {
      const [name, value] = text.split('=')
      stage.env[name!] = value!
    } else if (instruction === 'COPY') {
      copy(words, stages, inStage)
    } else if (instruction === 'RUN') {
      // Paths from the root of the image and the image's own user stand for those of the stage.
      const command = text.replaceAll(' /', ` ${stage.folder}/`).replace('chown node:node', `chown ${NOBODY}:${NOBODY}`)
      execFileSync('sh', ['-c', command], {
        cwd: inStage('.'),
        env: { ...environment, ...stage.env },
        stdio: 'inherit',
      })
    } else if (instruction === 'CMD') stage.command = JSON.parse(text)
  }
  return stage
}

function copy(words: string[], stages: Map<string, Stage>, inStage: (path: string) => string) {
  const [source, target] = words.slice(-2) as [string, string]
  const from = words[0]!.startsWith('--from=') ? stages.get(words[0]!.slice('--from='.length))! : undefined
  if (from) return cpSync(join(from.folder, source), inStage(target), { recursive: true, verbatimSymlinks: true })
  // The context without what Dockerfile.dockerignore names: the files that are committed or would be.
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: repository })
  for (const file of files.toString().trim().split('\n')) cpSync(join(repository, file), inStage(join(target, file)))
}

const postgresDir = join(root, 'postgres')
try {
  const image = buildImage()
  const size = execFileSync('du', ['-sm', image.folder]).toString().split('\t')[0]
  console.log(`The image adds ${size} MB to its base.`)
  const postgres = await startEmbeddedPostgres({ dataDir: postgresDir, log: createLog('error') })
  try {
    await startImage(image, postgres.connection)
  } finally {
    await postgres.stop()
  }
} finally {
  rmSync(root, { recursive: true, force: true })
}

async function startImage(image: Stage, { host, port, user }: { host: string; port: number; user: string }) {
  const secret = 'a-secret-of-this-test-that-is-long-enough'
  const child = spawn(process.execPath, image.command.slice(1), {
    cwd: join(image.folder, image.workdir),
    uid: NOBODY,
    gid: NOBODY,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH!,
      ...image.env,
      COUNTERSIGN_DATA_DIR: join(image.folder, image.env.COUNTERSIGN_DATA_DIR!),
      HOST: '127.0.0.1',
      PORT: '0',
      DATABASE_URL: `postgres://${user}@localhost:${port}/countersign?host=${encodeURIComponent(host)}`,
      ADMIN_KEY: secret,
      SIGNING_KEY: secret,
      ENCRYPTION_KEY: secret,
      PAY_TO_ADDRESS: '0x000000000000000000000000000000000000dEaD',
      FACILITATOR_URL: 'http://127.0.0.1:9',
    },
  })
  let output = ''
  const exit = new Promise<number | null>((resolve) => child.on('exit', resolve))
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data))
  const deadline = Date.now() + START_SECONDS * 1000
  let address: string | undefined
  while (!address && Date.now() < deadline && child.exitCode === null) {
    address = /listens on (http:\S+)/.exec(output)?.[1]
    await delay(100)
  }
  if (!address) throw new Error(`The service did not start:\n${output}`)
  const check = async (path: string, expected: number, init?: RequestInit) => {
    const { status } = await fetch(address + path, init)
    console.log(`${status} ${path}`)
    if (status !== expected) throw new Error(`${path} answered ${status} instead of ${expected}:\n${output}`)
  }
  await check('/api/health', 200)
  await check('/api/pricing', 200)
  await check('/docs', 200)
  await check('/dashboard', 200)
  await check('/openapi.json', 200)
  const body = JSON.stringify({ task: 'Tell a joke.' })
  await check('/api/run', 402, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  child.kill('SIGTERM')
  const code = await exit
  if (code !== 0) throw new Error(`The service ended with ${code} after SIGTERM:\n${output}`)
  console.log('The service of the image starts, answers and stops.')
}
