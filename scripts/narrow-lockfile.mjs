// Marks the EVM's binaries in package-lock.json with the machine each is for. Their own manifests do not say it, so npm would
// install all seven, 160 MB, on every machine. To be run again when the lockfile was made anew.
import { readFileSync, writeFileSync } from 'node:fs'

const file = new URL('../package-lock.json', import.meta.url)
const lockfile = JSON.parse(readFileSync(file, 'utf8'))
const evm = lockfile.packages['node_modules/@nomicfoundation/edr']
evm.optionalDependencies ??= evm.dependencies
delete evm.dependencies
for (const [path, entry] of Object.entries(lockfile.packages)) {
  const [, os, cpu, libc] = /\/edr-(darwin|linux|win32)-(arm64|x64)(?:-(gnu|musl|msvc))?$/.exec(path) ?? []
  if (!os) continue
  Object.assign(entry, { optional: true, os: [os], cpu: [cpu] })
  if (os === 'linux') entry.libc = [libc === 'musl' ? 'musl' : 'glibc']
}
writeFileSync(file, `${JSON.stringify(lockfile, null, 2)}\n`)
