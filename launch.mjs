// Runs a script of this project on Node 24: the host's own when it is new enough, else the one installed by npm.
// Plain JavaScript, because the host's Node may be as old as 20.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const REQUIRED_MAJOR = 24
const require = createRequire(import.meta.url)

function findNode() {
  if (Number(process.versions.node.split('.')[0]) >= REQUIRED_MAJOR) return process.execPath
  try {
    return join(dirname(require.resolve(`node-linux-${process.arch}/package.json`)), 'bin', 'node')
  } catch {
    return undefined
  }
}

const node = findNode()
if (!node) {
  console.error(
    `Countersign needs Node ${REQUIRED_MAJOR}. This is Node ${process.versions.node} on ${process.platform}-${process.arch}, and npm has no Node for it: install Node ${REQUIRED_MAJOR} or newer and start again.`,
  )
  process.exit(1)
}

// The compile cache is stored in node_modules, so that a second start does not compile everything again.
const NODE_COMPILE_CACHE =
  process.env.NODE_COMPILE_CACHE ?? join(dirname(fileURLToPath(import.meta.url)), 'node_modules', '.cache', 'compile')
const child = spawn(node, ['--disable-warning=ExperimentalWarning', ...process.argv.slice(2)], {
  stdio: 'inherit',
  env: { ...process.env, NODE_COMPILE_CACHE },
})
// Ctrl-C reaches the whole foreground process group; a signal sent to this process alone is forwarded. `npm start` replaces
// npm's shell with this process (`exec`), because that shell would end without passing a signal on.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('error', (error) => {
  console.error(`Could not start ${node}: ${error.message}`)
  process.exit(1)
})
child.on('exit', (code, signal) => process.exit(signal ? 128 + (signal === 'SIGINT' ? 2 : 15) : (code ?? 1)))
