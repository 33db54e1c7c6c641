// `prepack` of a package: builds what `npm pack` puts into its tarball. `--restore` (`postpack`) undoes the change of its
// package.json. In this repository packages are run from their TypeScript source, so `exports` names `.ts` files; Node refuses
// those inside node_modules, so the published package.json names the JavaScript built of them (docs/decisions/0023).
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import ts from 'typescript'

const root = resolve(import.meta.dirname, '..')
const folder = process.cwd()
const name = basename(folder)
const manifestFile = join(folder, 'package.json')
const sourceManifestFile = join(folder, '.package.source.json')
/** Every tarball has the repository's licence and changelog. */
const SHARED_FILES = ['LICENSE', 'CHANGELOG.md']
/** Libraries run in browsers, edge runtimes and Node 20; the CLI in Node 20; the server on the Node that it brings. */
const TARGETS = { proof: 'es2022', sdk: 'es2022', cli: 'es2022', server: 'es2024' }

const emitOptions = {
  target: ts.ScriptTarget[TARGETS[name].toUpperCase()],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  rewriteRelativeImportExtensions: true,
  verbatimModuleSyntax: true,
  sourceMap: true,
  inlineSources: true,
}

const sources = () => globSync('src/**/*.ts', { cwd: folder }).filter((file) => !file.endsWith('.test.ts'))

/** The files of a program, one by one: nobody imports it, so it has no types. */
function buildProgram() {
  for (const file of sources()) {
    const built = file.replace(/^src/, 'dist').replace(/\.ts$/, '.js')
    const { outputText, sourceMapText } = ts.transpileModule(readFileSync(join(folder, file), 'utf8'), {
      compilerOptions: { ...emitOptions, module: ts.ModuleKind.ESNext },
      fileName: join(folder, file),
    })
    mkdirSync(dirname(join(folder, built)), { recursive: true })
    writeFileSync(join(folder, built), outputText)
    writeFileSync(join(folder, `${built}.map`), sourceMapText)
  }
}

const RELATIVE_SOURCE = /((?:from|import)\s*\(?\s*['"]\.{1,2}\/[^'"]+)\.ts(['"])/g

/** TypeScript leaves `.ts` in the imports of declarations, and writes a source map for a file that has types alone. */
function tidyLibrary() {
  const built = (pattern) => globSync(`dist/**/*${pattern}`, { cwd: folder }).map((file) => join(folder, file))
  for (const file of built('.d.ts')) writeFileSync(file, readFileSync(file, 'utf8').replace(RELATIVE_SOURCE, '$1.js$2'))
  for (const file of built('.js')) {
    const code = ts.transpileModule(readFileSync(file, 'utf8'), {
      compilerOptions: { removeComments: true },
    }).outputText
    if (code.trim() !== 'export {};') continue
    writeFileSync(file, 'export {}\n')
    rmSync(`${file}.map`)
  }
}

function buildLibrary() {
  const { config } = ts.readConfigFile(join(folder, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, folder)
  const program = ts.createProgram(
    sources().map((file) => join(folder, file)),
    {
      ...options,
      ...emitOptions,
      noEmit: false,
      declaration: true,
      rootDir: join(folder, 'src'),
      outDir: join(folder, 'dist'),
    },
  )
  const { diagnostics } = program.emit()
  const problems = [...ts.getPreEmitDiagnostics(program), ...diagnostics]
  if (problems.length === 0) return tidyLibrary()
  const host = { getCurrentDirectory: () => root, getCanonicalFileName: (file) => file, getNewLine: () => '\n' }
  console.error(ts.formatDiagnostics(problems, host))
  process.exit(1)
}

const sourceFile = /^\.\/src\/(.+)\.ts$/

/** `./src/x.ts` becomes `./dist/x.js` with its types. */
function publishedManifest({ scripts: _scripts, devDependencies: _devDependencies, exports, ...manifest }) {
  const publish = (target) => {
    const [, path] = sourceFile.exec(target) ?? []
    return path ? { types: `./dist/${path}.d.ts`, default: `./dist/${path}.js` } : target
  }
  const published = Object.fromEntries(Object.entries(exports).map(([path, target]) => [path, publish(target)]))
  // For tools that do not read `exports`.
  const { types, default: main } = published['.'] ?? {}
  return { ...manifest, ...repositoryOf(), ...(main && { main, types }), exports: published }
}

/** Provenance needs the address of the repository, which the release knows (scripts/release.mjs). */
function repositoryOf() {
  const url = process.env.COUNTERSIGN_REPOSITORY
  return url ? { repository: { type: 'git', url, directory: name } } : {}
}

/** Also repairs what a `npm pack` left behind that was killed. */
function restore() {
  if (!existsSync(sourceManifestFile)) return
  renameSync(sourceManifestFile, manifestFile)
  for (const file of SHARED_FILES) rmSync(join(folder, file), { force: true })
}

/** What `/docs/guides` serves: the guides with their charts, and the README files of the packages. */
function copyGuides(target) {
  const guides = globSync(['docs/*.md', 'docs/*/*.svg', '{sdk,cli,proof}/README.md'], { cwd: root })
  for (const file of guides) cpSync(join(root, file), join(target, file))
}

restore()
if (!process.argv.includes('--restore')) {
  const manifest = JSON.parse(readFileSync(manifestFile, 'utf8'))
  rmSync(join(folder, 'dist'), { recursive: true, force: true })
  const isLibrary = Object.values(manifest.exports).some((target) => sourceFile.test(target))
  if (isLibrary) buildLibrary()
  else buildProgram()
  if (name === 'server') {
    await import('./build-web.mjs')
    cpSync(join(root, 'web/dist'), join(folder, 'dist/web'), { recursive: true })
    copyGuides(join(folder, 'dist/guides'))
  }
  copyFileSync(manifestFile, sourceManifestFile)
  for (const file of SHARED_FILES) copyFileSync(join(root, file), join(folder, file))
  writeFileSync(manifestFile, `${JSON.stringify(publishedManifest(manifest), null, 2)}\n`)
}
