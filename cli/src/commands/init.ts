import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { Command } from 'commander'
import { CliError } from '../cli-error.ts'
import { findServer } from './server.ts'

type InitOptions = {
  out: string
  database: string
  payTo: string
  facilitator?: string
  chainRpc?: string
  facilitatorKey?: string
  publicUrl?: string
  force?: boolean
}

const secret = () => randomBytes(32).toString('base64url')

/** Writes the settings of a production service with new secrets, and has the server check them before it keeps the file. */
export const initCommand = () =>
  new Command('init')
    .description('write the settings of a production service, checked, for `countersign serve --env-file`')
    .requiredOption('--database <url>', 'PostgreSQL, as postgres://user:password@host/name')
    .requiredOption('--pay-to <address>', 'address that receives payments')
    .option('--facilitator <url>', 'x402 facilitator that settles')
    .option('--chain-rpc <url>', 'node of the chain, to settle yourself; with --facilitator-key')
    .option('--facilitator-key <keys>', 'private keys that settle, separated by commas')
    .option('--public-url <url>', 'address by which clients reach the service')
    .option('--out <file>', 'file to write', 'countersign.env')
    .option('--force', 'overwrite the file; its secrets are lost')
    .action((options: InitOptions) => {
      if (existsSync(options.out) && !options.force)
        throw new CliError(
          `${options.out} exists, and its secrets with it: choose another file with --out, or pass --force.`,
        )
      const settings: Record<string, string | undefined> = {
        NODE_ENV: 'production',
        DATABASE_URL: options.database,
        PAY_TO_ADDRESS: options.payTo,
        FACILITATOR_URL: options.facilitator,
        CHAIN_RPC_URL: options.chainRpc,
        FACILITATOR_PRIVATE_KEY: options.facilitatorKey,
        PUBLIC_URL: options.publicUrl,
        ADMIN_KEY: secret(),
        SIGNING_KEY: secret(),
        ENCRYPTION_KEY: secret(),
      }
      const chosenSettings = Object.entries(settings).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      )
      checkSettings(Object.fromEntries(chosenSettings))
      if (options.force) rmSync(options.out, { force: true })
      const lines = chosenSettings.map(([name, value]) => `${name}=${quote(value)}`)
      writeFileSync(options.out, `${lines.join('\n')}\n`, { mode: 0o600, flag: 'wx' })
      console.log(
        `${options.out} is written (mode 0600); keep a copy of its secrets. Start: countersign serve --env-file ${options.out}`,
      )
    })

function quote(value: string): string {
  if (/["\n\r]/.test(value)) throw new CliError('A setting may contain neither a double quote nor a line break.')
  return `"${value}"`
}

function checkSettings(settings: Record<string, string>) {
  const { PATH, HOME } = process.env
  const { status, stderr } = spawnSync(process.execPath, [findServer(), 'check-settings'], {
    env: { PATH, HOME, ...settings },
    encoding: 'utf8',
  })
  if (status !== 0) throw new CliError(stderr.trim() || 'The settings could not be checked.')
}
