import { type Config, type SettingGroup, type SettingName, settingNames, settings } from '../../platform/config.ts'

export type EnvCheck = {
  status: 'ok' | 'incomplete'
  missing_required: string[]
  services: Record<string, { required: Record<string, string>; optional: Record<string, string> }>
}

const MISSING = '[missing]'
// Shown even where no setting belongs to them yet: a reader of the report may count on these.
const groups = ['admin', 'database', 'cache', 'payments', 'signing', 'lanes', 'brokerage', 'basis', 'billing']

/**
 * Which settings the service has, never what they are. `made` are those it made itself (keys, a payee), with their
 * length (0 where there is no text to count): to the operator they count as set. In production the settings marked so are required and must be given.
 */
export function envCheck(config: Config, made: ReadonlyMap<SettingName, number>): EnvCheck {
  const services: EnvCheck['services'] = Object.fromEntries(
    groups.map((group) => [group, { required: {}, optional: {} }]),
  )
  const missing: string[] = []
  for (const name of settingNames) {
    const { group, secret, production } = settings[name] as {
      group: SettingGroup
      secret?: boolean
      production?: boolean
    }
    const required = config.NODE_ENV === 'production' && production === true
    services[group] ??= { required: {}, optional: {} }
    const shown = show(config, made, name, secret === true)
    services[group][required ? 'required' : 'optional'][name] = shown
    if (required && shown === MISSING) missing.push(name)
  }
  return { status: missing.length === 0 ? 'ok' : 'incomplete', missing_required: missing, services }
}

function show(config: Config, made: ReadonlyMap<SettingName, number>, name: SettingName, secret: boolean): string {
  const given = config.provided.has(name)
  const length = given ? String(config[name]).length : made.get(name)
  if (length === undefined) return MISSING
  return secret && length > 0 ? `[set, ${length} chars]` : '[set]'
}
