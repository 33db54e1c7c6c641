// Runs a script on the Node that the server needs: the host's own when it is new enough, else the one installed by npm.
// Plain JavaScript, because the host's Node may be as old as 20.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const REQUIRED_MAJOR = 24
const require = createRequire(import.meta.url)

function findNode() {
  if (Number(process.versions.node.split('.')[0]) >= REQUIRED_MAJOR) return process.execPath
  try {
    return join(dirname(require.resolve(`node-${process.platform}-${process.arch}/package.json`)), 'bin', 'node')
  } catch {
    return undefined
  }
}

/** What this machine lacks, said before anything is tried. */
function describeMissing() {
  const machine = `Node ${process.versions.node} on ${process.platform}-${process.arch}`
  if (process.platform === 'win32')
    return `Countersign's server does not run on Windows itself (this is ${machine}): use WSL 2 and start again there. Calling a service and verifying receipts work here: the packages @countersign/sdk, @countersign/proof and countersign.`
  const brought =
    process.platform === 'linux' ? 'npm did not install the one that it brings' : 'npm has none for this machine'
  return `Countersign needs Node ${REQUIRED_MAJOR}. This is ${machine}, and ${brought}: install Node ${REQUIRED_MAJOR} or newer and start again.`
}

/** The Node to use. Ends this process on a machine that cannot run the server. */
export function requireNode() {
  const node = findNode()
  if (node && process.platform !== 'win32') return node
  console.error(describeMissing())
  process.exit(1)
}

/** Ends this process with the exit code of the script. */
export function runOnRequiredNode(args, env = {}) {
  const node = requireNode()
  const child = spawn(node, ['--disable-warning=ExperimentalWarning', ...args], {
    stdio: 'inherit',
    env: { ...process.env, ...env },
  })
  // Ctrl-C reaches the whole foreground process group; a signal sent to this process alone is forwarded.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => {
    console.error(`Could not start ${node}: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => process.exit(signal ? 128 + (signal === 'SIGINT' ? 2 : 15) : (code ?? 1)))
}
