import { type Config, type SettingGroup, type SettingName, settingNames, settings } from '../../platform/config.ts'

export type EnvCheck = {
  status: 'ok' | 'incomplete'
  missing_required: string[]
  services: Record<string, { required: Record<string, string>; optional: Record<string, string> }>
}

const MISSING = '[missing]'
// Always in the report, even without a setting: readers may rely on these groups.
const groups = ['admin', 'database', 'cache', 'payments', 'signing', 'lanes', 'brokerage', 'basis', 'billing']

/**
 * Reports which settings are set, never their values. `generatedLengths` holds the settings the service generated itself (keys, a
 * payee) with their length (0 where there is no text); they count as set. In production, settings marked `production` are required.
 */
export function checkEnv(config: Config, generatedLengths: ReadonlyMap<SettingName, number>): EnvCheck {
  const services: EnvCheck['services'] = Object.fromEntries(
    groups.map((group) => [group, { required: {}, optional: {} }]),
  )
  const missingNames: string[] = []
  for (const name of settingNames) {
    const { group, secret, production } = settings[name] as {
      group: SettingGroup
      secret?: boolean
      production?: boolean
    }
    const required = config.NODE_ENV === 'production' && production === true
    services[group] ??= { required: {}, optional: {} }
    const description = describeSetting(config, generatedLengths, name, secret === true)
    services[group][required ? 'required' : 'optional'][name] = description
    if (required && description === MISSING) missingNames.push(name)
  }
  return { status: missingNames.length === 0 ? 'ok' : 'incomplete', missing_required: missingNames, services }
}

function describeSetting(
  config: Config,
  generatedLengths: ReadonlyMap<SettingName, number>,
  name: SettingName,
  secret: boolean,
): string {
  const isSet = config.provided.has(name)
  const length = isSet ? String(config[name]).length : generatedLengths.get(name)
  if (length === undefined) return MISSING
  return secret && length > 0 ? `[set, ${length} chars]` : '[set]'
}
