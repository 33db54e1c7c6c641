import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

export type ReceivedMail = {
  from: string
  to: string[]
  /** Unfolded, by lower-case name; every value of a header that is repeated. */
  headers: Record<string, string[]>
  text: string
  raw: string
}

export type MailServer = Awaited<ReturnType<typeof openMailServer>>

/** A real SMTP server on loopback that keeps what it receives. `answer` may refuse a recipient, refuse the message or never answer. */
export async function openMailServer(host = '127.0.0.1') {
  const received: ReceivedMail[] = []
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS', 'AUTH'],
    disableReverseLookup: true,
    onRcptTo(_address, _session, done) {
      if (mail.answer === 'refuse-recipient')
        return done(Object.assign(new Error('No such mailbox'), { responseCode: 550 }))
      done()
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        if (mail.answer === 'hang') return
        if (mail.answer === 'refuse') return done(Object.assign(new Error('Try later'), { responseCode: 451 }))
        const { mailFrom, rcptTo } = session.envelope
        received.push({
          from: mailFrom ? mailFrom.address : '',
          to: rcptTo.map(({ address }) => address),
          ...parseMail(Buffer.concat(chunks).toString('utf8')),
        })
        done()
      })
    },
  })
  server.on('error', () => {})
  await new Promise<void>((listening) => server.listen(0, host, listening))
  const mail = {
    received,
    answer: 'accept' as 'accept' | 'hang' | 'refuse' | 'refuse-recipient',
    url: `smtp://${host}:${(server.server.address() as AddressInfo).port}`,
    close: () => new Promise<void>((closed) => server.close(() => closed())),
  }
  return mail
}

function parseMail(raw: string): Pick<ReceivedMail, 'headers' | 'text' | 'raw'> {
  const end = raw.indexOf('\r\n\r\n')
  const headers: Record<string, string[]> = {}
  for (const line of raw
    .slice(0, end)
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')) {
    const [, name, value] = /^([^:]+): ?(.*)$/.exec(line)!
    headers[name!.toLowerCase()] = [...(headers[name!.toLowerCase()] ?? []), value!]
  }
  const body = raw.slice(end + 4)
  const encoding = headers['content-transfer-encoding']?.[0]
  return { headers, raw, text: decodeBody(body, encoding).replaceAll('\r\n', '\n') }
}

function decodeBody(body: string, encoding: string | undefined): string {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString('utf8')
  if (encoding !== 'quoted-printable') return body
  const bytes = body
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
