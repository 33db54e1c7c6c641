import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { openMailServer } from '../../../test/mail-server.ts'
import { createSmtpMailer } from './smtp.ts'

const from = { name: 'Countersign', address: 'approvals@example.com' }
const mail = { id: 'msg_1', to: { name: '', address: 'boss@acme.example' }, subject: 'Subject', text: 'Text\n' }
const opened: Server[] = []

afterEach(() => {
  for (const server of opened.splice(0)) server.close()
})

/** A server that speaks a part of SMTP and then nothing. */
async function openSilentServer(greeting: string): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.write(greeting)
    setTimeout(() => socket.destroy(), 60_000).unref()
  })
  opened.push(server)
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test.each([
  ['never greets', ''],
  ['greets and then hangs', '220 silent ESMTP\r\n'],
])('a server that %s is given up after the time-out', async (_name, greeting) => {
  const send = createSmtpMailer({ url: await openSilentServer(greeting), from, timeoutMs: 300 })
  const startedAt = performance.now()
  expect(await send(mail)).toEqual({ ok: false, error: 'the mail server did not answer in time' })
  expect(performance.now() - startedAt).toBeLessThan(20_000)
})

test('a server that takes the message and never confirms it is given up after the time-out', async () => {
  const server = await openMailServer()
  server.answer = 'hang'
  const send = createSmtpMailer({ url: server.url, from, timeoutMs: 300 })
  expect(await send(mail)).toEqual({ ok: false, error: 'the mail server did not answer in time' })
  await server.close()
})

test('a server that cannot be reached is named by its error code alone', async () => {
  const url = await openSilentServer('')
  await new Promise<void>((closed) => opened.pop()!.close(() => closed()))
  const outcome = await createSmtpMailer({ url, from, timeoutMs: 300 })(mail)
  expect(outcome).toEqual({ ok: false, error: 'the mail server could not be reached (ESOCKET)' })
})

test('a message leaves in plain text to this machine, or where the operator says so, and to no other', async () => {
  const server = await openMailServer()
  const send = createSmtpMailer({ url: server.url, from, timeoutMs: 2_000 })
  expect(await send(mail)).toEqual({ ok: true, error: null })
  expect(server.received[0]).toMatchObject({ to: ['boss@acme.example'], text: 'Text\n' })
  expect(server.received[0]!.headers['message-id']).toEqual(['<msg_1@example.com>'])

  await server.close()

  const elsewhere = await openMailServer('127.0.0.2')
  const refused = await createSmtpMailer({ url: elsewhere.url, from, timeoutMs: 2_000 })(mail)
  expect(refused).toEqual({ ok: false, error: 'the mail server did not agree to encryption' })
  expect(elsewhere.received).toEqual([])
  const plain = createSmtpMailer({ url: `${elsewhere.url}?ignoreTLS=true`, from, timeoutMs: 2_000 })
  expect(await plain(mail)).toEqual({ ok: true, error: null })
  await elsewhere.close()
})
