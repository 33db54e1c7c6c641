import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Client, type ClientOptions, createClient } from '@countersign/sdk'
import { Command } from 'commander'
import { CliError } from './cli-error.ts'

/** Which service a command talks to, and as whom. */
export type ServiceOptions = { url?: string; keyFile?: string; json?: boolean }

export const serviceCommand = (name: string) =>
  new Command(name)
    .option('--url <address>', 'the service; else COUNTERSIGN_URL, else the one started from this folder')
    .option('--key-file <file>', 'file of the API key; else COUNTERSIGN_API_KEY')
    .option('--json', 'print JSON')

const DEFAULT_URL = 'http://127.0.0.1:4020'

export const dataFolder = () => resolve(process.env.COUNTERSIGN_DATA_DIR ?? '.countersign')

/** The service that was started from this folder writes its address and process into the data folder. */
function findLocalService(): string | undefined {
  try {
    const { url, pid } = JSON.parse(readFileSync(join(dataFolder(), 'service.json'), 'utf8'))
    process.kill(pid, 0)
    return url
  } catch {
    return undefined
  }
}

export const serviceUrl = ({ url }: ServiceOptions) =>
  url ?? process.env.COUNTERSIGN_URL ?? findLocalService() ?? DEFAULT_URL

export function readKeyFile(file: string): string {
  if (!existsSync(file)) throw new CliError(`There is no file ${file}.`)
  const key = readFileSync(file, 'utf8').trim()
  if (key === '' || /\s/.test(key)) throw new CliError(`${file} must hold one key and nothing else.`)
  return key
}

export const apiKey = ({ keyFile }: ServiceOptions): string | undefined =>
  keyFile === undefined ? process.env.COUNTERSIGN_API_KEY : readKeyFile(keyFile)

export function connect(options: ServiceOptions, more: Partial<ClientOptions> = {}): Client {
  try {
    return createClient({ baseUrl: serviceUrl(options), apiKey: apiKey(options), ...more })
  } catch (error) {
    throw new CliError((error as Error).message)
  }
}
