import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const folder = join(import.meta.dirname, '../../../deploy')

/** These tests need tools that npm does not install; without them they are skipped with a warning. */
const has = (tool: string) => {
  const isInstalled = spawnSync(tool, ['--version']).status === 0
  if (!isInstalled) console.warn(`${tool} is not installed: its tests of deploy/ are skipped.`)
  return isInstalled
}

const run = (tool: string, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(tool, args, { cwd: folder, encoding: 'utf8' })
  return { status, output: stdout + stderr }
}

test.runIf(has('promtool'))('Prometheus accepts the alerts, and they fire when they should and not before', () => {
  for (const args of [
    ['check', 'rules', 'prometheus-rules.yaml'],
    ['check', 'config', '--syntax-only', 'prometheus.yaml'],
    ['test', 'rules', 'prometheus-rules.test.yaml'],
    ['check', 'rules', '../ops/cluster/prometheus-rules.yaml'],
    ['test', 'rules', '../ops/cluster/prometheus-rules.test.yaml'],
  ]) {
    const { status, output } = run('promtool', ...args)
    expect(status, output).toBe(0)
  }
})

test.runIf(has('systemd-analyze'))('systemd accepts the unit', () => {
  const temporary = mkdtempSync(join(tmpdir(), 'countersign-unit-'))
  try {
    // systemd also checks that the program exists, so the unit is given one.
    const program = join(temporary, 'node_modules/.bin/countersign')
    mkdirSync(join(program, '..'), { recursive: true })
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
    const unit = readFileSync(join(folder, 'countersign.service'), 'utf8').replaceAll('/opt/countersign', temporary)
    writeFileSync(join(temporary, 'countersign.service'), unit)
    const { status, output } = run('systemd-analyze', 'verify', '--man=no', join(temporary, 'countersign.service'))
    expect(output).not.toMatch(/Unknown (key|section|lvalue)/)
    expect(status, output).toBe(0)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
})

const clusterFolder = join(folder, '../ops/cluster')

/** The templates of ops/cluster with the values of the example, as a machine has them. */
function fillClusterTemplate(name: string): string {
  const script = `set -a; . ./machine.env.example; NODE_ADDRESS=127.0.0.1 SUPERUSER_PASSWORD=a REPLICATION_PASSWORD=b REWIND_PASSWORD=c; envsubst < ${name}`
  const { status, stdout, stderr } = spawnSync('sh', ['-c', script], { cwd: clusterFolder, encoding: 'utf8' })
  expect(status, stderr).toBe(0)
  return stdout
}

test.runIf(has('systemd-analyze'))('systemd accepts the units of the cluster', () => {
  const temporary = mkdtempSync(join(tmpdir(), 'countersign-units-'))
  try {
    for (const name of ['etcd', 'patroni', 'haproxy']) {
      const unit = readFileSync(join(clusterFolder, `systemd/countersign-${name}.service`), 'utf8')
      // systemd also checks that programs exist, and these packages may not be installed.
      const path = join(temporary, `countersign-${name}.service`)
      writeFileSync(path, unit.replace(/^(Exec\w+=[+-]*)\/\S+/gm, '$1/bin/true'))
      const { status, output } = run('systemd-analyze', 'verify', '--man=no', path)
      expect(output).not.toMatch(/Unknown (key|section|lvalue)/)
      expect(status, output).toBe(0)
    }
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
})

const hasEnvsubst = has('envsubst')

test.runIf(hasEnvsubst && spawnSync('haproxy', ['-v']).status === 0)('HAProxy accepts its configuration', () => {
  const temporary = mkdtempSync(join(tmpdir(), 'countersign-haproxy-'))
  try {
    writeFileSync(join(temporary, 'haproxy.cfg'), fillClusterTemplate('haproxy.cfg'))
    const { status, output } = run('haproxy', '-c', '-f', join(temporary, 'haproxy.cfg'))
    expect(status, output).toBe(0)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
})
