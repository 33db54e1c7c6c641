import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Config, ConfigError } from '../platform/config.ts'
import { createDemoWorld } from './demo-world.ts'
import { findRunningService } from './running-service.ts'

/** Fills a running service for development with an organisation to look at, and prints the key to sign in with. */
export async function demoSeed(config: Config) {
  const url = await findRunningService(config)
  if (!url) throw new ConfigError('No service is running. Start one with `npm start`, then run this again.')
  const adminKey = config.ADMIN_KEY ?? readAdminKey(config)
  console.log(`Filling the service at ${url}; this takes some seconds.`)
  const { organisation, apiKey, readerKey } = await createDemoWorld({ url, adminKey })
  console.log(`
  Organisation  ${organisation}
  Dashboard     ${url}/dashboard#/account
  API key       ${apiKey}
  Read only     ${readerKey}

Sign in with the key. Everything was made through the API: runs, approvals, budgets, policies, webhooks, trades.`)
}

function readAdminKey(config: Config): string {
  const path = join(resolve(config.COUNTERSIGN_DATA_DIR), 'keys', 'admin.key')
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    throw new ConfigError(`There is no admin key in ${path}. Set ADMIN_KEY to the one of the service that runs.`)
  }
}
