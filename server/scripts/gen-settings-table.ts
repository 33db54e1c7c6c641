import { settingNames, settings } from '../src/platform/config.ts'

/** The page of settings, from the one table that the service itself reads. */
export function settingsTable(): string {
  const rows = settingNames.map((name) => {
    const { group, about, fallback, secret, production } = settings[name] as {
      group: string
      about: string
      fallback: unknown
      secret?: boolean
      production?: boolean
    }
    const marks = [secret && 'secret', production && 'required in production'].filter(Boolean).join(', ')
    return `| \`${name}\` | ${group} | ${fallback === undefined ? '' : `\`${fallback}\``} | ${about}${marks ? ` (${marks})` : ''} |`
  })
  return `# Settings\n\nMade by \`npm run gen\` from \`server/src/platform/config.ts\`. All are environment variables.\n\n| Name | Group | Default | About |\n|---|---|---|---|\n${rows.join('\n')}\n`
}
