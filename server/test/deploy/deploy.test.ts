import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { settingNames, settings } from '../../src/platform/config.ts'
import { startService, type TestService } from '../harness.ts'

const readDeployFile = (name: string) => readFileSync(join(import.meta.dirname, '../../../deploy', name), 'utf8')

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

/** The series that a metric of `/metrics` has: a histogram has three. */
async function readSeriesNames(): Promise<Set<string>> {
  const { text } = await service.get('/metrics')
  const names = new Set<string>()
  for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    names.add(name!)
    if (type === 'histogram') for (const suffix of ['bucket', 'count', 'sum']) names.add(`${name}_${suffix}`)
  }
  return names
}

const seriesOf = (text: string) => new Set(text.match(/\bcountersign_[a-z0-9_]+/g))

test.each(['prometheus-rules.yaml', 'grafana-dashboard.json'])(
  'every metric in %s is one that the service has',
  async (file) => {
    const names = await readSeriesNames()
    const used = [...seriesOf(readDeployFile(file))]
    expect(used.length).toBeGreaterThan(10)
    expect(used.filter((name) => !names.has(name))).toEqual([])
  },
)

test('every metric that docs/operations.md says to alert on has an alert, and every alert says what to do', () => {
  const rules = readDeployFile('prometheus-rules.yaml')
  const guide = readDeployFile('../docs/operations.md')
  const rows = guide.split('\n').filter((line) => line.startsWith('| `countersign_'))
  expect(rows.length).toBeGreaterThan(10)
  const alerted = seriesOf(rules)
  for (const name of rows.flatMap((row) => row.split('|')[1]!.match(/countersign_[a-z0-9_]+/g)!))
    expect(
      [...alerted].some((series) => series.startsWith(name)),
      name,
    ).toBe(true)
  const alerts = rules.split('- alert: ').slice(1)
  for (const alert of alerts) expect(alert, alert.split('\n')[0]).toMatch(/summary: /)
})

test('the files name settings that exist, and all that production requires', () => {
  const compose = readDeployFile('compose.yaml')
  const example = readDeployFile('env.example')
  const named = [
    ...[...example.matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name!),
    ...[...readDeployFile('Dockerfile').matchAll(/^ENV ([A-Z_]+)=/gm)].map(([, name]) => name!),
    ...[...readDeployFile('countersign.service').matchAll(/(?<![A-Za-z])([A-Z_]{4,})=/g)].map(([, name]) => name!),
    ...[...compose.matchAll(/^ {4}([A-Z_]+): /gm)].map(([, name]) => name!),
  ].filter((name) => !name.startsWith('POSTGRES_'))
  expect(named.filter((name) => !settingNames.includes(name as never))).toEqual([])
  const required = settingNames.filter((name) => (settings[name] as { production?: boolean }).production)
  expect(required).toContain('SIGNING_KEY')
  expect(required.filter((name) => !named.includes(name))).toEqual([])
})
