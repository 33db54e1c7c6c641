import { settingNames, settings } from '../src/platform/config.ts'

/** Generates docs/settings.md from the settings table of the service. */
export function generateSettingsPage(): string {
  const rows = settingNames.map((name) => {
    const { group, about, fallback, secret, production } = settings[name] as {
      group: string
      about: string
      fallback: unknown
      secret?: boolean
      production?: boolean
    }
    const notes = [secret && 'secret', production && 'required in production'].filter(Boolean).join(', ')
    return `| \`${name}\` | ${group} | ${fallback === undefined ? '' : `\`${fallback}\``} | ${about}${notes ? ` (${notes})` : ''} |`
  })
  return `# Settings\n\nMade by \`npm run gen\` from \`server/src/platform/config.ts\`. All are environment variables.\n\n| Name | Group | Default | About |\n|---|---|---|---|\n${rows.join('\n')}\n`
}
