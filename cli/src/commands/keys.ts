import { writeFileSync } from 'node:fs'
import type { ApiRequest } from '@countersign/sdk'
import { Command } from 'commander'
import { list, wholeNumber } from '../arguments.ts'
import { CliError } from '../cli-error.ts'
import { collect, formatFields, formatTable, show } from '../output.ts'
import { connect, type ServiceOptions, serviceCommand } from '../service.ts'

type Scopes = ApiRequest<'/api/keys', 'post'>['body']['scopes']
type SaveOptions = ServiceOptions & { save?: string }

const LIST_LIMIT = 1_000

/** A key is shown once; with `--save` only its file has it. An existing file is not overwritten. */
function saveKey<T extends { api_key: string }>(created: T, { save }: SaveOptions): T {
  if (save === undefined) return created
  try {
    writeFileSync(save, `${created.api_key}\n`, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    throw new CliError(
      `The key was made but could not be written: ${(cause as Error).message}. It is ${created.api_key}`,
    )
  }
  return { ...created, api_key: `in ${save}` }
}

export function keysCommand(): Command {
  const keys = new Command('keys').description('API keys')
  keys.addCommand(
    serviceCommand('list')
      .description('keys of your tenant')
      .action(async (options: ServiceOptions) =>
        show(await collect(connect(options).keys.list(), LIST_LIMIT), options, (items) =>
          formatTable(items, [
            ['KEY', ({ key_id }) => key_id],
            ['NAME', ({ name }) => name],
            ['BEGINS', ({ key_prefix }) => key_prefix],
            ['SCOPES', ({ scopes }) => scopes.join(',')],
            ['SPENDER', ({ spender }) => spender],
            ['STATE', ({ revoked_at, expires_at }) => (revoked_at ? 'revoked' : (expires_at ?? 'active'))],
          ]),
        ),
      ),
  )
  keys.addCommand(
    serviceCommand('onboard')
      .description('make a tenant and its first key')
      .requiredOption('--org <name>', 'name of the organisation')
      .requiredOption('--email <address>', 'whom to reach')
      .option('--save <file>', 'write the key to this file (mode 0600) instead of the terminal')
      .action(async (options: SaveOptions & { org: string; email: string }) => {
        const body = { org_name: options.org, email: options.email }
        const created = await connect(options).post('/api/onboard', { body })
        show(saveKey(created, options), options, ({ tenant_id, api_key, plan }) =>
          formatFields([
            ['tenant', tenant_id],
            ['plan', plan],
            ['key', api_key],
          ]),
        )
      }),
  )
  keys.addCommand(
    serviceCommand('create')
      .description('make a key; it can have no scope that yours lacks')
      .requiredOption('--name <name>', 'what the key is for')
      .requiredOption('--scopes <scopes>', 'read, run, control, mandate, keys, admin; separated by commas', list)
      .option('--spender <id>', 'bind it to a spender')
      .option('--team <name>', 'bind it to a team')
      .option('--save <file>', 'write the key to this file (mode 0600) instead of the terminal')
      .action(async (options: SaveOptions & { name: string; scopes: string[]; spender?: string; team?: string }) => {
        const { name, scopes, spender, team } = options
        const body = { name, scopes: scopes as Scopes, ...(spender && { spender }), ...(team && { team }) }
        const created = await connect(options).post('/api/keys', { body })
        show(saveKey(created, options), options, ({ key_id, api_key }) =>
          formatFields([
            ['id', key_id],
            ['key', api_key],
          ]),
        )
      }),
  )
  keys.addCommand(
    serviceCommand('rotate')
      .description('replace a key; both work during the overlap')
      .argument('<key_id>')
      .option('--overlap <seconds>', 'how long the old key still works', wholeNumber)
      .option('--save <file>', 'write the key to this file (mode 0600) instead of the terminal')
      .action(async (keyId: string, options: SaveOptions & { overlap?: number }) => {
        const body = options.overlap === undefined ? {} : { overlap_seconds: options.overlap }
        const created = await connect(options).post('/api/keys/{key_id}/rotate', { path: { key_id: keyId }, body })
        show(saveKey(created, options), options, ({ key_id, api_key }) =>
          formatFields([
            ['id', key_id],
            ['key', api_key],
          ]),
        )
      }),
  )
  keys.addCommand(
    serviceCommand('revoke')
      .description('end a key at once')
      .argument('<key_id>')
      .action(async (keyId: string, options: ServiceOptions) => {
        const revoked = await connect(options).delete('/api/keys/{key_id}', { path: { key_id: keyId } })
        show(revoked ?? { key_id: keyId }, options, () => `${keyId} is revoked.`)
      }),
  )
  return keys
}
