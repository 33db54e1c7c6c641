// Mutation tests of the pure files of proof, money, policy and auth: each mutant that no test notices is printed.
// Stryker has a lockfile of its own, which is installed here and not by `npm ci` of the project.
// `npm run test:mutation -- proof/src/inclusion.ts` mutates these files only.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

const folder = 'scripts/mutation'
const stryker = `${folder}/node_modules/@stryker-mutator/core/bin/stryker.js`
const run = (command, args) => spawnSync(command, args, { stdio: 'inherit' }).status ?? 1

if (!existsSync(stryker) && run('npm', ['ci', '--ignore-scripts', '--prefix', folder]) !== 0) process.exit(1)
const files = process.argv.slice(2)
const mutate = files.length > 0 ? ['--mutate', files.join(',')] : []
process.exit(run(process.execPath, [stryker, 'run', `${folder}/stryker.config.json`, ...mutate]))
