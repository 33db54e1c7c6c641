// Builds proof/ as a standalone package of JavaScript and type declarations, for `npm pack` or publishing.
import { execFileSync } from 'node:child_process'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const outputFolder = resolve(process.argv[2] ?? join(root, 'proof/dist'))
const compilerOptions = {
  outDir: outputFolder,
  declaration: 'true',
  rewriteRelativeImportExtensions: 'true',
  module: 'nodenext',
  target: 'es2022',
  lib: 'es2024,dom',
  strict: 'true',
  skipLibCheck: 'true',
}
rmSync(outputFolder, { recursive: true, force: true })
execFileSync(
  process.execPath,
  [
    join(root, 'node_modules/typescript/bin/tsc'),
    join(root, 'proof/src/proof.ts'),
    ...Object.entries(compilerOptions).flatMap(([name, value]) => [`--${name}`, value]),
  ],
  { stdio: 'inherit' },
)
const { name, version, license, type, dependencies } = JSON.parse(
  readFileSync(join(root, 'proof/package.json'), 'utf8'),
)
const exports = { '.': { types: './proof.d.ts', default: './proof.js' } }
const description = 'Verifies everything Countersign signs, with public keys alone'
writeFileSync(
  join(outputFolder, 'package.json'),
  `${JSON.stringify({ name, version, description, license, type, exports, dependencies }, null, 2)}\n`,
)
copyFileSync(join(root, 'proof/README.md'), join(outputFolder, 'README.md'))
copyFileSync(join(root, 'LICENSE'), join(outputFolder, 'LICENSE'))
