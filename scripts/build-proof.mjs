// Builds proof/ as a package that runs without this repository: plain JavaScript and its types, for `npm pack` or publishing.
import { execFileSync } from 'node:child_process'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const folder = resolve(process.argv[2] ?? join(root, 'proof/dist'))
const compile = {
  outDir: folder,
  declaration: 'true',
  rewriteRelativeImportExtensions: 'true',
  module: 'nodenext',
  target: 'es2022',
  lib: 'es2024,dom',
  strict: 'true',
  skipLibCheck: 'true',
}
rmSync(folder, { recursive: true, force: true })
execFileSync(
  process.execPath,
  [
    join(root, 'node_modules/typescript/bin/tsc'),
    join(root, 'proof/src/proof.ts'),
    ...Object.entries(compile).flatMap(([name, value]) => [`--${name}`, value]),
  ],
  { stdio: 'inherit' },
)
const { name, version, license, type, dependencies } = JSON.parse(
  readFileSync(join(root, 'proof/package.json'), 'utf8'),
)
const exports = { '.': { types: './proof.d.ts', default: './proof.js' } }
const description = 'Verifies what Countersign signs, with public keys alone'
writeFileSync(
  join(folder, 'package.json'),
  `${JSON.stringify({ name, version, description, license, type, exports, dependencies }, null, 2)}\n`,
)
copyFileSync(join(root, 'proof/README.md'), join(folder, 'README.md'))
copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
