import type { ApiRequest, ApiResponse } from '@countersign/sdk'

export type Channel = ApiResponse<'/api/approval-channels', 'get'>['channels'][number]
export type NewChannel = ApiRequest<'/api/approval-channels', 'post'>['body']

export const channelTypes = ['email', 'slack', 'webhook'] as const satisfies readonly NewChannel['type'][]

/** Who or what gets the messages, in a line. */
export const describeTarget = ({ url, recipients }: Pick<Channel, 'url' | 'recipients'>): string =>
  url ?? recipients.map(({ email, name }) => (name && email ? `${name} <${email}>` : (email ?? ''))).join(', ')

/** One recipient a line, as an address or as `Name <address>`. */
export const parseRecipients = (text: string): { email: string; name?: string }[] =>
  text
    .split(/[\n,;]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      const [, name = '', email] = /^(.*?)\s*<([^<>]+)>$/.exec(line) ?? []
      return email === undefined ? { email: line } : { email: email.trim(), ...(name && { name }) }
    })

export function toNewChannel(form: FormData): NewChannel {
  const readText = (name: string) => String(form.get(name) ?? '').trim()
  const type = channelTypes.find((known) => known === readText('type')) ?? 'email'
  return {
    type,
    ...(readText('name') && { name: readText('name') }),
    ...(type === 'email' ? { recipients: parseRecipients(readText('recipients')) } : { url: readText('url') }),
  }
}
