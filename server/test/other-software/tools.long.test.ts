import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'
import { INSTALL_LIMIT_MS, installPackages, readResult } from '../install-packages.ts'
import { discovery } from './packages.ts'
import { noteRan } from './ran.ts'

const LIMIT = { timeout: INSTALL_LIMIT_MS + 120_000 }

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service?.close())

test('agents that read OpenAPI take paid calls as paid, and find nothing missing', LIMIT, async () => {
  const installed = await installPackages(discovery.packages)
  try {
    const { status, body } = readResult(await installed.script(discovery.script, { URL: service.url }))
    expect(status).toBe(200)
    type Warning = { code: string; path?: string; message: string }
    const unexplained = (body.warnings as Warning[]).filter(
      ({ code, path }) =>
        // The document describes the whole service, not only what an agent buys.
        code !== 'L2_ROUTE_COUNT_HIGH' &&
        // The tool knows keys in a header; the basis API takes one as `Authorization: Bearer`, or none.
        !(code === 'L2_AUTH_MODE_MISSING' && path?.startsWith('/api/basis/')),
    )
    expect(unexplained).toEqual([])
    expect(body.modes).toMatchObject({
      'POST /api/run': 'paid',
      'POST /api/loop': 'paid',
      'POST /api/wallets/{id}/topup': 'apiKey+paid',
      'GET /api/pricing': 'unprotected',
      'GET /api/runs': 'apiKey',
    })
    noteRan(discovery.name)
  } finally {
    installed.remove()
  }
})

test('Redocly and Spectral find no error in openapi.json, and no warning without a reason', LIMIT, async () => {
  const installed = await installPackages(['@redocly/cli@2.73.0', '@stoplight/spectral-cli@6.16.3'])
  try {
    const document = resolve(import.meta.dirname, '../../../openapi.json')
    const redocly = await installed.bin('redocly', ['lint', document, '--format=json', '--max-problems=1000'])
    type Problem = { ruleId: string; severity: string; message: string; location: { pointer: string }[] }
    const { problems } = JSON.parse(redocly.stdout) as { problems: Problem[] }
    // `/api/route-intent` is planned (501), `/api/rh/auth` redirects to the broker, and former paths answer 308 and nothing else;
    // health refuses nobody.
    const answersNoBody = /\/(api~1route-intent|api~1rh~1auth|api~1settlement|api~1onboarding)\//
    const unexplained = problems.filter(
      ({ ruleId, severity, location }) =>
        severity === 'error' ||
        !(
          (['operation-2xx-response', 'operation-4xx-response'].includes(ruleId) &&
            answersNoBody.test(location[0]!.pointer.replace('#/paths/~1', '/'))) ||
          (ruleId === 'operation-4xx-response' && location[0]!.pointer.includes('~1api~1health'))
        ),
    )
    expect(unexplained.map(({ ruleId, location }) => `${ruleId} ${location[0]!.pointer}`)).toEqual([])
    noteRan('@redocly/cli 2.73.0')

    writeFileSync(join(installed.folder, '.spectral.yaml'), 'extends: ["spectral:oas"]\n')
    const spectral = await installed.bin('spectral', ['lint', document, '-r', '.spectral.yaml', '-f', 'json', '-q'])
    const results = JSON.parse(spectral.stdout) as { code: string; path: string[] }[]
    const warnings = results.filter(
      ({ code, path }) => !(code === 'operation-success-response' && path[1] === '/api/route-intent'),
    )
    expect(warnings.map(({ code, path }) => `${code} ${path.join('.')}`)).toEqual([])
    noteRan('@stoplight/spectral-cli 6.16.3')
  } finally {
    installed.remove()
  }
})
