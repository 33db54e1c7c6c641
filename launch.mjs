// Runs a script of this repository on Node 24. `npm start` replaces npm's shell with this process (`exec`), because that
// shell would end without passing a signal on.
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runOnRequiredNode } from './server/bin/required-node.mjs'

// The compile cache is stored in node_modules, so that a second start does not compile everything again.
const NODE_COMPILE_CACHE =
  process.env.NODE_COMPILE_CACHE ?? join(dirname(fileURLToPath(import.meta.url)), 'node_modules', '.cache', 'compile')
runOnRequiredNode(process.argv.slice(2), { NODE_COMPILE_CACHE })
