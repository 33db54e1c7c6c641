import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'
import { INSTALL_LIMIT_MS, installPackages } from '../install-packages.ts'
import { noteRan } from '../other-software/ran.ts'

const SDK = '@a2a-js/sdk@1.3.0'

let service: TestService
let packages: Awaited<ReturnType<typeof installPackages>>
beforeAll(async () => {
  packages = await installPackages([SDK])
  service = await startService()
}, INSTALL_LIMIT_MS + 180_000)
afterAll(async () => {
  packages?.remove()
  await service?.close()
})

test(`${SDK} reads the agent card: interfaces, skills with prices, and the key as an optional scheme`, async () => {
  const { DefaultAgentCardResolver } = await packages.load('@a2a-js/sdk/client')
  const card = await new DefaultAgentCardResolver().resolve(service.url)
  const pricing = (await service.get('/api/pricing')).body
  expect(card).toMatchObject({
    name: 'Countersign',
    documentationUrl: `${service.url}/docs`,
    capabilities: { streaming: false, pushNotifications: false },
    securitySchemes: { apiKey: { scheme: { $case: 'apiKeySecurityScheme', value: { name: 'X-API-Key' } } } },
    securityRequirements: [],
  })
  expect(card.supportedInterfaces[0]).toMatchObject({ url: `${service.url}/api/run`, protocolVersion: '1.0' })
  expect(card.skills.map(({ id }: { id: string }) => id)).toEqual(
    pricing.lanes.map(({ agent_id }: { agent_id: string }) => agent_id),
  )
})

test(`${SDK} finds no binding that it could send A2A messages to, because the card claims none`, async () => {
  const { ClientFactory } = await packages.load('@a2a-js/sdk/client')
  await expect(new ClientFactory().createFromUrl(service.url)).rejects.toThrow(/transport|interface|binding/i)
  noteRan(SDK)
})
