import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { claimMessages } from '../../src/modules/governance/approvals/messages.store.ts'
import { type MailServer, openMailServer } from '../mail-server.ts'
import { openReceiver, type Receiver } from '../webhooks/receiver.ts'
import { anotherKey, openWorld, richTenant, run, type Tenant, type World } from './world.ts'

const CHANNELS = '/api/approval-channels'
const CANARY = 'wombat-canary-77120'

let world: World
let mail: MailServer
let receiver: Receiver
let respond: 'accept' | 'fail' | 'gone' = 'accept'

beforeAll(async () => {
  mail = await openMailServer()
  receiver = await openReceiver((_received, response) => {
    response.statusCode = { accept: 200, fail: 500, gone: 410 }[respond]
    response.end()
  })
  world = await openWorld({ SMTP_URL: mail.url, SMTP_FROM: 'Countersign <approvals@example.com>' })
})
beforeEach(() => {
  mail.answer = 'accept'
  respond = 'accept'
  mail.received.length = 0
  receiver.received.length = 0
})
afterAll(async () => {
  await world?.close()
  await mail?.close()
  await receiver?.close()
})

/** Sends what is due, as the background work would. */
async function deliver() {
  const { messageWorker } = world.service.governance
  await messageWorker.deliverDue()
  await messageWorker.idle()
}

const emailChannel = async (tenant: Pick<Tenant, 'headers'>, ...emails: string[]) => {
  const recipients = (emails.length === 0 ? ['boss@acme.example'] : emails).map((email) => ({ email }))
  const { status, body, text } = await world.post(
    CHANNELS,
    { type: 'email', name: 'Finance', recipients },
    tenant.headers,
  )
  if (status !== 201) throw new Error(text)
  return body
}

/** A pre-authorisation that a policy of the tenant sends to review. */
async function requestApproval(
  tenant: Tenant,
  options: { constraints?: object; preauth?: object; headers?: Record<string, string> } = {},
): Promise<string> {
  const agent = `agent-${Math.random().toString(36).slice(2)}`
  const agent_id = (options.preauth as { agent_id?: string } | undefined)?.agent_id ?? agent
  await world.post(
    '/api/policies',
    {
      name: 'Finance looks first',
      identity_type: 'agent',
      agent_id,
      constraints: { require_approval_above_usdc: 0.001, ...options.constraints },
    },
    tenant.headers,
  )
  const { body, text } = await world.post(
    '/api/pre-auth',
    { agent_id, amount_usdc: 0.5, merchant: { id: 'maps.example' }, purpose: CANARY, ...options.preauth },
    options.headers ?? tenant.headers,
  )
  if (!body?.approval_id) throw new Error(text)
  return body.approval_id
}

const linkIn = (text: string) => {
  const match = /(http:\/\/[^\s|>"]+)(\/approve\/[A-Za-z0-9_-]{43})/.exec(text)
  if (!match) throw new Error(`no link in: ${text}`)
  return match[2]!
}

/** Delivers, and returns the path of the link in the newest e-mail to this address. */
async function mailedLink(address = 'boss@acme.example'): Promise<string> {
  await deliver()
  return linkIn(mail.received.findLast(({ to }) => to.includes(address))!.text)
}

const decide = (path: string, form: Record<string, string> | string) =>
  world.call('POST', path, new URLSearchParams(form).toString(), {
    'content-type': 'application/x-www-form-urlencoded',
  })
const approve = (path: string, reason = '') => decide(path, { decision: 'approve', reason })
const approvalOf = async (tenant: Tenant, id: string) => (await world.get(`/api/approvals/${id}`, tenant.headers)).body

describe('channels', () => {
  test('are created, listed, changed and deleted; a key without control, and another tenant, cannot', async () => {
    const tenant = await richTenant(world)
    const created = await emailChannel(tenant, 'boss@acme.example', 'cfo@acme.example')
    expect(created).toMatchObject({ type: 'email', name: 'Finance', is_active: true, url: null })
    expect(created.recipients.map((recipient: { email: string }) => recipient.email)).toEqual([
      'boss@acme.example',
      'cfo@acme.example',
    ])
    expect((await world.get(CHANNELS, tenant.headers)).body.channels).toEqual([created])
    expect((await world.get(`${CHANNELS}/${created.id}`, tenant.headers)).body).toEqual(created)
    const patched = await world.call('PATCH', `${CHANNELS}/${created.id}`, { name: 'Money' }, tenant.headers)
    expect(patched.body).toMatchObject({ name: 'Money', recipients: created.recipients })

    const reader = await anotherKey(world, tenant, ['read', 'run'])
    expect((await world.get(CHANNELS, reader)).status).toBe(403)
    const stranger = await richTenant(world)
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PATCH', '', { name: 'Mine' }],
      ['DELETE', '', undefined],
      ['POST', '/test', {}],
      ['GET', '/messages', undefined],
    ] as const)
      expect((await world.call(method, `${CHANNELS}/${created.id}${path}`, body, stranger.headers)).status).toBe(404)

    expect((await world.call('DELETE', `${CHANNELS}/${created.id}`, undefined, tenant.headers)).body).toEqual({
      id: created.id,
      deleted: true,
    })
    expect((await world.get(`${CHANNELS}/${created.id}`, tenant.headers)).status).toBe(404)
  })

  test.each([
    ['no address of a Slack channel', { type: 'slack' }, /url is missing/],
    ['no recipients of an e-mail channel', { type: 'email' }, /recipients is missing/],
    [
      'a URL of an e-mail channel',
      { type: 'email', url: 'https://x.example', recipients: [{ email: 'a@b.example' }] },
      /body\/url/,
    ],
    [
      'recipients of a webhook',
      { type: 'webhook', url: 'https://x.example', recipients: [{ email: 'a@b.example' }] },
      /recipients/,
    ],
    ['an unknown type', { type: 'pigeon' }, /must be one of/],
    ['a private address', { type: 'slack', url: 'https://10.0.0.1/x' }, /public address/],
    ['a private address of a webhook', { type: 'webhook', url: 'https://169.254.169.254/' }, /public address/],
    ['plain http', { type: 'webhook', url: 'http://hooks.example/x' }, /https/],
    ['two addresses in one', { type: 'email', recipients: [{ email: 'a@b.example,c@d.example' }] }, /not an e-mail/],
    [
      'a header in an address',
      { type: 'email', recipients: [{ email: 'a@b.example\r\nBcc: c@d.example' }] },
      /not an e-mail/,
    ],
    ['a quoted address', { type: 'email', recipients: [{ email: '"a@b.example x"@d.example' }] }, /not an e-mail/],
    [
      'a header in a name',
      { type: 'email', recipients: [{ email: 'a@b.example', name: 'A\r\nBcc: c@d.example' }] },
      /control character/,
    ],
    ['an address twice', { type: 'email', recipients: [{ email: 'a@b.example' }, { email: 'A@b.example' }] }, /twice/],
    [
      '21 recipients',
      { type: 'email', recipients: Array.from({ length: 21 }, (_, n) => ({ email: `a${n}@b.example` })) },
      /20/,
    ],
    ['a long name', { type: 'slack', url: 'https://x.example', name: 'x'.repeat(101) }, /100/],
  ])('%s is a 400 that says so', async (_name, body, message) => {
    const tenant = await world.onboard()
    const response = await world.post(CHANNELS, body, tenant.headers)
    expect(response.status).toBe(400)
    expect(response.body).toMatchObject({ error: 'invalid_request', message: expect.stringMatching(message) })
    expect((await world.get(CHANNELS, tenant.headers)).body.channels).toEqual([])
  })

  test('a tenant has at most 20, also when 25 are created at once', async () => {
    const tenant = await world.onboard()
    const responses = await Promise.all(
      Array.from({ length: 25 }, () => world.post(CHANNELS, { type: 'slack', url: receiver.url }, tenant.headers)),
    )
    expect(responses.map(({ status }) => status).sort()).toEqual([...Array(20).fill(201), ...Array(5).fill(409)])
  })

  test('e-mail without a mail server is a 503 that names the settings', async () => {
    const bare = await openWorld()
    try {
      const tenant = await bare.onboard()
      const body = { type: 'email', recipients: [{ email: 'a@b.example' }] }
      const response = await bare.post(CHANNELS, body, tenant.headers)
      expect(response.status).toBe(503)
      expect(response.body).toMatchObject({
        code: 'not_configured',
        message: expect.stringMatching(/SMTP_URL and SMTP_FROM/),
      })
    } finally {
      await bare.close()
    }
  })

  test('addresses and secrets are encrypted at rest; a Slack path and a signing secret are not shown again', async () => {
    const tenant = await world.onboard()
    const secretPath = `${receiver.url}/T000/B000/${CANARY}`
    const slack = await world.post(CHANNELS, { type: 'slack', url: secretPath }, tenant.headers)
    const webhook = await world.post(CHANNELS, { type: 'webhook', url: secretPath }, tenant.headers)
    const { signingSecret } = webhook.body
    expect(signingSecret).toMatch(/^whsec_/)
    const { rows } = await world.service.database.pool.query(
      'select channel::text || recipient::text as text from approval_channels channel join approval_recipients recipient on recipient.channel_id = channel.id where channel.tenant_id = $1',
      [tenant.tenantId],
    )
    expect(rows).toHaveLength(2)
    for (const { text } of rows) {
      expect(text).not.toContain(CANARY)
      expect(text).not.toContain(signingSecret.slice(6))
    }
    expect(slack.text).not.toContain(CANARY)
    expect((await world.get(CHANNELS, tenant.headers)).text).not.toContain(signingSecret)
  })
})

describe('messages', () => {
  test('a mail server, a Slack-compatible address and a webhook get the approval with its link, and not the task', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    await world.post(CHANNELS, { type: 'slack', url: receiver.url }, tenant.headers)
    const webhook = await world.post(CHANNELS, { type: 'webhook', url: receiver.url }, tenant.headers)
    await world.post(
      '/api/policies',
      { name: 'Marketing reads first', rules: [{ field: 'agent_id', op: '=', value: 'writer-v1', effect: 'review' }] },
      tenant.headers,
    )
    const refused = await run(world, tenant, { agent_id: 'writer-v1', task: `Write about ${CANARY}.` })
    expect(refused.body.approval_id).toMatch(/^apr_/)
    await deliver()

    const [email] = mail.received
    expect(email).toMatchObject({ from: 'approvals@example.com', to: ['boss@acme.example'] })
    const [slack, signed] = [
      receiver.received.find(({ headers }) => !headers['webhook-id'])!,
      receiver.received.find(({ headers }) => headers['webhook-id'])!,
    ]
    const { rule } = await approvalOf(tenant, refused.body.approval_id)
    const links = [email!.text, (slack.json as unknown as { text: string }).text, signed.body].map(linkIn)
    expect(new Set(links).size).toBe(3)
    for (const text of [email!.text, slack.body, signed.body]) {
      expect(text).toContain('writer-v1')
      expect(text).toContain('countersign')
      expect(text).toContain(rule.sentence)
      expect(text).toMatch(/0\.\d+ USDC/)
      expect(text).not.toContain(CANARY)
    }
    expect(slack.json).toHaveProperty('blocks')
    const message = new Webhook(webhook.body.signingSecret).verify(signed.body, {
      ...signed.headers,
      'webhook-timestamp': signed.headers['webhook-timestamp']!,
    }) as { type: string; data: { approval_id: string } }
    expect(message).toMatchObject({ type: 'approval.requested', data: { approval_id: refused.body.approval_id } })

    for (const link of links) {
      const page = await world.get(link)
      expect(page.status).toBe(200)
      expect(page.text).toContain(`Write about ${CANARY}.`)
      expect(page.text).toContain('This spender has paid nothing in the last 30 days.')
    }
    const [channel] = (await world.get(CHANNELS, tenant.headers)).body.channels
    const { messages } = (await world.get(`${CHANNELS}/${channel.id}/messages`, tenant.headers)).body
    expect(messages).toMatchObject([
      { approval_id: refused.body.approval_id, state: 'sent', attempts: 1, last_error: null },
    ])
  })

  test('a test message reaches every recipient, has no link, and is listed as sent', async () => {
    const tenant = await world.onboard()
    const channel = await emailChannel(tenant, 'a@acme.example', 'b@acme.example')
    const sent = await world.post(`${CHANNELS}/${channel.id}/test`, {}, tenant.headers)
    expect(sent.status).toBe(202)
    await deliver()
    expect(mail.received.flatMap(({ to }) => to).sort()).toEqual(['a@acme.example', 'b@acme.example'])
    for (const { text } of mail.received) expect(text).not.toContain('/approve/')
    const { messages } = (await world.get(`${CHANNELS}/${channel.id}/messages?state=sent`, tenant.headers)).body
    expect(messages.map(({ id }: { id: string }) => id).sort()).toEqual(sent.body.message_ids.sort())
  })

  test('an address that fails is tried six times with growing pauses, then the message has failed', async () => {
    const tenant = await richTenant(world)
    const channel = (await world.post(CHANNELS, { type: 'slack', url: receiver.url }, tenant.headers)).body
    await requestApproval(tenant)
    respond = 'fail'
    const read = async () => (await world.get(`${CHANNELS}/${channel.id}/messages`, tenant.headers)).body.messages[0]
    const pauses: number[] = []
    for (let attempt = 1; attempt <= 6; attempt += 1) {
      await deliver()
      const message = await read()
      expect(message).toMatchObject({ attempts: attempt, last_error: 'answered 500' })
      if (attempt === 6) break
      expect(message.state).toBe('pending')
      const pause = Date.parse(message.next_attempt_at) - world.clock.now().getTime()
      pauses.push(pause / 1000)
      world.clock.advance(pause - 1)
      await deliver()
      world.clock.advance(1)
    }
    expect(pauses).toEqual([5, 30, 120, 600, 1800])
    expect(await read()).toMatchObject({ state: 'failed', next_attempt_at: null })
    world.clock.advance(86_000_000)
    await deliver()
    expect(receiver.received).toHaveLength(6)
  })

  test('a mail server that refuses a recipient for good is not asked again, one that refuses for now is', async () => {
    const tenant = await richTenant(world)
    const channel = await emailChannel(tenant)
    const read = async () => (await world.get(`${CHANNELS}/${channel.id}/messages`, tenant.headers)).body.messages[0]
    mail.answer = 'refuse-recipient'
    await requestApproval(tenant)
    await deliver()
    expect(await read()).toMatchObject({ state: 'failed', attempts: 1, last_error: expect.stringContaining('550') })
    mail.answer = 'refuse'
    await requestApproval(tenant)
    await deliver()
    expect(await read()).toMatchObject({ state: 'pending', attempts: 1, last_error: expect.stringContaining('451') })
    mail.answer = 'accept'
    world.clock.advance(5_000)
    await deliver()
    expect(await read()).toMatchObject({ state: 'sent', attempts: 2, last_error: null })
  })

  test('a process that dies after it claimed a message leaves it to the next, and whichever link arrived decides once', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    const id = await requestApproval(tenant)
    const options = { limit: 10, perTenant: 4, underWay: {}, leaseSeconds: 120, worker: 'dead' }
    const claimed = await claimMessages(world.db, { ...options, at: world.clock.now() })
    expect(claimed.map((message) => message.approval_id)).toEqual([id])
    await deliver()
    expect(mail.received).toEqual([])
    world.clock.advance(120_000)
    expect((await approve(await mailedLink())).status).toBe(200)
    expect((await approvalOf(tenant, id)).status).toBe('approved')
  })

  test('a message is not sent once the approval is decided', async () => {
    const tenant = await richTenant(world)
    const channel = await emailChannel(tenant)
    const approval_id = await requestApproval(tenant)
    await world.post('/api/approvals', { approval_id, decision: 'reject' }, tenant.headers)
    await deliver()
    expect(mail.received).toEqual([])
    const { messages } = (await world.get(`${CHANNELS}/${channel.id}/messages`, tenant.headers)).body
    expect(messages).toMatchObject([{ state: 'failed', last_error: expect.stringContaining('decided') }])
  })

  test('text of an agent ends no header, adds no recipient and mentions nobody in Slack', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    await world.post(CHANNELS, { type: 'slack', url: receiver.url }, tenant.headers)
    const agent_id = 'a\r\nBcc: evil@example.com\r\n\r\n<!channel> <https://evil.example|Approve> \u202etxt.exe'
    const merchant = '"m\r\nX-Evil: 1'
    // The doors refuse such names now, and requests from before may have them.
    const refused = { agent_id, merchant: { id: merchant }, amount_usdc: 1 }
    expect((await world.post('/api/pre-auth', refused, tenant.headers)).status).toBe(400)
    const approvalId = await requestApproval(tenant)
    const rename = 'update approvals set agent_id = $2, merchant = $3 where id = $1'
    await world.service.database.pool.query(rename, [approvalId, agent_id, merchant])
    await deliver()
    const [email] = mail.received
    expect(email!.to).toEqual(['boss@acme.example'])
    expect(Object.keys(email!.headers)).not.toContain('bcc')
    expect(Object.keys(email!.headers)).not.toContain('x-evil')
    expect(email!.text).not.toContain('\u202e')
    const slack = receiver.received[0]!.json as unknown as {
      text: string
      blocks: { text?: { type: string; text: string } }[]
    }
    const markdown = [slack.text, ...slack.blocks.flatMap(({ text }) => (text?.type === 'mrkdwn' ? [text.text] : []))]
    for (const text of markdown) expect(text.replace(/<http:\/\/[^|>]+\|[^>]+>/, '')).not.toMatch(/[<>]/)
  })

  test('beyond 500 messages in an hour they are recorded as failed and not sent, and a test is a 429', async () => {
    const tenant = await richTenant(world)
    const channel = await emailChannel(tenant)
    const insert = `insert into approval_messages (id, tenant_id, channel_id, recipient_id, state, created_at, sent_at)
      select 'msg_filler-' || $1 || n, $1, $2, $3, 'sent', $4, $4 from generate_series(1, 500) n`
    const at = world.clock.now()
    await world.service.database.pool.query(insert, [tenant.tenantId, channel.id, channel.recipients[0].id, at])
    const approval_id = await requestApproval(tenant)
    await deliver()
    expect(mail.received).toEqual([])
    const { messages } = (
      await world.get(`${CHANNELS}/${channel.id}/messages?approval_id=${approval_id}`, tenant.headers)
    ).body
    expect(messages).toMatchObject([{ state: 'failed', last_error: 'more than 500 messages in an hour' }])
    expect((await world.post(`${CHANNELS}/${channel.id}/test`, {}, tenant.headers)).status).toBe(429)
  })
})

describe('a link', () => {
  test('decides nothing when it is fetched, approves once, and then says how it was decided', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    const id = await requestApproval(tenant)
    const link = await mailedLink()
    for (const method of ['GET', 'HEAD', 'GET'])
      expect((await world.call(method, link, undefined, { purpose: 'prefetch' })).status).toBe(200)
    expect((await approvalOf(tenant, id)).status).toBe('pending')

    const decided = await approve(link, 'Fine by me')
    expect(decided.status).toBe(200)
    expect(decided.text).toContain('<h1>Approved</h1>')
    const approval = await approvalOf(tenant, id)
    expect(approval).toMatchObject({ status: 'approved', resolution: 'approved' })
    expect(approval.approvals).toMatchObject([
      { key_id: expect.stringMatching(/^recipient:rcp_/), decision: 'approve', reason: 'Fine by me' },
    ])

    expect((await approve(link)).status).toBe(409)
    expect((await decide(link, { decision: 'reject' })).status).toBe(409)
    const after = await world.get(link)
    expect(after.status).toBe(410)
    expect(after.text).toMatch(/This was approved on .*You decided this/)
    expect(after.text).not.toContain('<form')
    for (const { text } of [decided, after]) expect(text).not.toContain(CANARY)
    expect((await approvalOf(tenant, id)).approvals).toHaveLength(1)
  })

  test('decides once when ten requests send it at the same time', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    const id = await requestApproval(tenant)
    const link = await mailedLink()
    const statuses = (await Promise.all(Array.from({ length: 10 }, () => approve(link)))).map(({ status }) => status)
    expect(statuses.sort()).toEqual([200, ...Array(9).fill(409)])
    expect((await approvalOf(tenant, id)).approvals).toHaveLength(1)
  })

  test('rejects with a reason', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    const id = await requestApproval(tenant)
    const rejected = await decide(await mailedLink(), { decision: 'reject', reason: 'Too much' })
    expect(rejected.text).toContain('<h1>Rejected</h1>')
    expect(await approvalOf(tenant, id)).toMatchObject({ status: 'rejected', approvals: [{ reason: 'Too much' }] })
  })

  test('is refused after somebody else decided, and says how', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant, 'boss@acme.example', 'cfo@acme.example')
    const id = await requestApproval(tenant)
    const link = await mailedLink('boss@acme.example')
    await decide(await mailedLink('cfo@acme.example'), { decision: 'reject' })
    expect((await approve(link)).status).toBe(409)
    const page = await world.get(link)
    expect(page.status).toBe(410)
    expect(page.text).toMatch(/This was rejected on .*Somebody else decided this/)
    expect((await approvalOf(tenant, id)).status).toBe('rejected')
  })

  test('that is tampered with, unknown or of another form is a 404 and decides nothing', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    const id = await requestApproval(tenant)
    const link = await mailedLink()
    const other = link.at(-2) === 'A' ? 'B' : 'A'
    for (const tampered of [
      link.slice(0, -2) + other + link.at(-1),
      `${link}A`,
      link.slice(0, -1),
      '/approve/x',
      `/approve/${'A'.repeat(43)}`,
    ]) {
      expect((await world.get(tampered)).status).toBe(404)
      expect((await approve(tampered)).status).toBe(404)
    }
    expect((await approvalOf(tenant, id)).status).toBe('pending')
  })

  test('of one tenant decides nothing of another', async () => {
    const [one, two] = [await richTenant(world), await richTenant(world)]
    await emailChannel(one, 'one@acme.example')
    await emailChannel(two, 'two@acme.example')
    const [ofOne, ofTwo] = [await requestApproval(one), await requestApproval(two)]
    const link = await mailedLink('two@acme.example')
    expect((await world.get(link)).text).not.toContain(ofOne)
    await decide(link, { decision: 'approve', approval_id: ofOne, tenant_id: one.tenantId })
    expect((await approvalOf(one, ofOne)).status).toBe('pending')
    expect((await approvalOf(two, ofTwo)).status).toBe('approved')
  })

  test.each([
    [
      'the recipient is removed',
      (id: string) => ['PATCH', `/${id}`, { recipients: [{ email: 'cfo@acme.example' }] }] as const,
    ],
    ['the channel is switched off', (id: string) => ['PATCH', `/${id}`, { is_active: false }] as const],
    ['the channel is deleted', (id: string) => ['DELETE', `/${id}`, undefined] as const],
  ])('is a 404 when %s', async (_name, change) => {
    const tenant = await richTenant(world)
    const channel = await emailChannel(tenant)
    const id = await requestApproval(tenant)
    const link = await mailedLink()
    const [method, path, body] = change(channel.id)
    expect((await world.call(method, `${CHANNELS}${path}`, body, tenant.headers)).status).toBe(200)
    expect((await world.get(link)).status).toBe(404)
    expect((await approve(link)).status).toBe(404)
    expect((await approvalOf(tenant, id)).status).toBe('pending')
  })

  test('is a 404 when the action is another one', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    const id = await requestApproval(tenant)
    const link = await mailedLink()
    await world.db.updateTable('approvals').set({ action_hash: 'sha256:other' }).where('id', '=', id).execute()
    expect((await world.get(link)).status).toBe(404)
    expect((await approve(link)).status).toBe(404)
  })

  test('ends with its approval', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    const id = await requestApproval(tenant)
    const link = await mailedLink()
    world.clock.advance(86_400_000)
    const late = await approve(link)
    expect(late.status).toBe(410)
    expect((await world.get(link)).text).toContain('<h1>Expired</h1>')
    await world.service.governance.sweepExpiredApprovals()
    expect((await approvalOf(tenant, id)).resolution).toBe('expired')
    expect((await approve(link)).status).toBe(410)
  })

  test.each([
    ['no decision', ''],
    ['another decision', 'decision=maybe'],
    ['two decisions', 'decision=approve&decision=reject'],
    ['a long reason', `decision=approve&reason=${'x'.repeat(501)}`],
    ['a NUL in the reason', 'decision=approve&reason=%00'],
  ])('with %s is a 400 page and decides nothing', async (_name, form) => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    const id = await requestApproval(tenant)
    const link = await mailedLink()
    const refused = await decide(link, form)
    expect(refused.status).toBe(400)
    expect(refused.headers.get('content-type')).toMatch(/text\/html/)
    expect((await approvalOf(tenant, id)).status).toBe('pending')
  })

  test('with JSON or too large a form is refused as a page, and forms stay refused elsewhere', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    await requestApproval(tenant)
    const link = await mailedLink()
    expect((await world.post(link, { decision: 'approve' })).status).toBe(415)
    expect((await decide(link, { decision: 'approve', reason: 'x'.repeat(20_000) })).status).toBe(413)
    const form = { 'content-type': 'application/x-www-form-urlencoded', ...tenant.headers }
    expect((await world.call('POST', '/api/approvals', 'decision=approve', form)).status).toBe(415)
  })
})

describe('who decides', () => {
  test('a recipient cannot approve what the key that added it requested', async () => {
    const tenant = await richTenant(world)
    const colleague = await anotherKey(world, tenant)
    await emailChannel(tenant)
    const constraints = { separate_approver: true }
    const own = await requestApproval(tenant, { constraints })
    const refused = await approve(await mailedLink())
    expect(refused.status).toBe(403)
    expect(refused.text).toContain('You cannot decide this')
    expect((await approvalOf(tenant, own)).status).toBe('pending')
    const other = await requestApproval(tenant, { constraints, headers: colleague })
    expect((await approve(await mailedLink())).status).toBe(200)
    expect((await approvalOf(tenant, other)).status).toBe('approved')
  })

  test('a key and the recipient it added are one voter, two recipients are two, and one address is one', async () => {
    const tenant = await richTenant(world)
    const requester = await anotherKey(world, tenant)
    await emailChannel(tenant, 'boss@acme.example', 'cfo@acme.example')
    await emailChannel(tenant, 'Boss@acme.example')
    const request = () => requestApproval(tenant, { constraints: { approvals_required: 2 }, headers: requester })

    const first = await request()
    await deliver()
    const bossLinks = mail.received
      .filter(({ to }) => to[0]!.toLowerCase() === 'boss@acme.example')
      .map(({ text }) => linkIn(text))
    expect(bossLinks).toHaveLength(2)
    const voted = await approve(bossLinks[0]!)
    expect(voted.text).toContain('Your approval is recorded')
    expect((await approve(bossLinks[1]!)).status).toBe(409)
    const byAdder = await world.post('/api/approvals', { approval_id: first, decision: 'approve' }, tenant.headers)
    expect(byAdder.status).toBe(409)
    expect((await approvalOf(tenant, first)).status).toBe('pending')
    expect((await approve(await mailedLink('cfo@acme.example'))).status).toBe(200)
    expect((await approvalOf(tenant, first)).status).toBe('approved')

    const second = await request()
    await world.post('/api/approvals', { approval_id: second, decision: 'approve' }, tenant.headers)
    expect((await approve(await mailedLink('cfo@acme.example'))).status).toBe(409)
    expect((await approvalOf(tenant, second)).status).toBe('pending')
  })

  test('whoever redirects a channel becomes its adder, and links that went to the former address stop working', async () => {
    const tenant = await richTenant(world)
    const requester = await anotherKey(world, tenant)
    const channel = (await world.post(CHANNELS, { type: 'slack', url: receiver.url }, tenant.headers)).body
    const id = await requestApproval(tenant, { constraints: { separate_approver: true }, headers: requester })
    await deliver()
    const former = linkIn((receiver.received[0]!.json as unknown as { text: string }).text)
    const moved = await world.call('PATCH', `${CHANNELS}/${channel.id}`, { url: `${receiver.url}/mine` }, requester)
    expect(moved.body.recipients[0].added_by).not.toBe(channel.recipients[0].added_by)
    expect((await approve(former)).status).toBe(404)
    const next = await requestApproval(tenant, { constraints: { separate_approver: true }, headers: requester })
    await deliver()
    expect((await approve(linkIn((receiver.received.at(-1)!.json as unknown as { text: string }).text))).status).toBe(
      403,
    )
    expect([(await approvalOf(tenant, id)).status, (await approvalOf(tenant, next)).status]).toEqual([
      'pending',
      'pending',
    ])
  })

  test('who stays in a changed list keeps the key that added them', async () => {
    const tenant = await richTenant(world)
    const colleague = await anotherKey(world, tenant)
    const channel = await emailChannel(tenant)
    const recipients = [{ email: 'BOSS@acme.example' }, { email: 'new@acme.example' }]
    const { body } = await world.call('PATCH', `${CHANNELS}/${channel.id}`, { recipients }, colleague)
    expect(body.recipients[0]).toEqual(channel.recipients[0])
    expect(body.recipients[1].added_by).not.toBe(channel.recipients[0].added_by)
  })

  test('the audit event of a decision names channel and recipient, with the address masked', async () => {
    const tenant = await richTenant(world)
    const channel = await emailChannel(tenant)
    const id = await requestApproval(tenant)
    await approve(await mailedLink())
    await world.service.sequencer.runOnce()
    const { body } = await world.get('/api/audit?limit=100', tenant.headers)
    const event = body.events.find(({ type }: { type: string }) => type === 'approval.approved')
    expect(event).toMatchObject({
      actor: `recipient:${channel.recipients[0].id}`,
      subject: id,
      data: { channel_id: channel.id, recipient_id: channel.recipients[0].id, recipient: 'b***@acme.example' },
    })
    expect(JSON.stringify(body)).not.toContain('boss@acme.example')
  })
})

describe('the page', () => {
  test('shows every field as text, whatever it contains', async () => {
    const tenant = await richTenant(world)
    const evil = `<img src=x onerror=alert(1)>"'&<script>`
    await world.post(
      CHANNELS,
      { type: 'email', name: evil, recipients: [{ email: 'boss@acme.example', name: evil }] },
      tenant.headers,
    )
    await world.db.updateTable('tenants').set({ org_name: evil }).where('id', '=', tenant.tenantId).execute()
    await world.post(
      '/api/policies',
      { name: evil, rules: [{ field: 'agent_id', op: '=', value: evil, effect: 'review', reason: evil }] },
      tenant.headers,
    )
    const refused = await world.post(
      '/api/pre-auth',
      { agent_id: evil, amount_usdc: 0.5, merchant: { id: evil } },
      tenant.headers,
    )
    expect(refused.body.approval_id).toMatch(/^apr_/)
    const link = await mailedLink()
    const pages = [await world.get(link), await approve(link), await world.get(link)]
    expect(pages.map(({ status }) => status)).toEqual([200, 200, 410])
    for (const { text } of pages) {
      expect(text).not.toMatch(/<img|<script|onerror=alert\(1\)>/)
      expect(text).toContain('&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;&lt;script&gt;')
    }
  })

  test('loads nothing, runs no script, and is kept by no cache, index or frame', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    await requestApproval(tenant)
    const link = await mailedLink()
    for (const path of [link, '/approve/unknown']) {
      const { headers, text } = await world.get(path)
      const policy = headers.get('content-security-policy')!
      expect(policy).toMatch(
        /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
      )
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('x-robots-tag')).toContain('noindex')
      expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(text).not.toContain('<script')
    }
  })
})

describe('a trade that waits for an approval', () => {
  const requestTrade = async (tenant: Tenant, headers = tenant.headers): Promise<string> => {
    const { body, text } = await world.post(
      '/api/rh/run',
      {
        tenant_id: tenant.tenantId,
        symbol: 'BTC-PERP',
        instrument_type: 'perp',
        side: 'long',
        quantity: 0.01,
        leverage: 2,
      },
      headers,
    )
    if (body?.status !== 'pending_approval') throw new Error(text)
    return body.run_id
  }
  const stateOf = async (tenant: Tenant, id: string) => (await world.get(`/api/rh/runs/${id}`, tenant.headers)).body

  test('reaches people with its terms, and a link approves it once', async () => {
    const tenant = await richTenant(world)
    const channel = await emailChannel(tenant)
    const id = await requestTrade(tenant)
    const link = await mailedLink()
    expect(mail.received.at(-1)!.text).toContain('BTC-PERP')
    const page = await world.get(link)
    expect(page.text).toContain('Approve this trade?')
    const rows = /<dl>(.*?)<\/dl>/s.exec(page.text)![1]!
    for (const name of ['Order', 'Leverage', 'Liquidation price', 'Price when asked', 'Price now'])
      expect(rows).toContain(`<dt>${name}</dt>`)
    expect(page.text).toContain('Default perp policy')
    expect(page.text).toContain(`href="/dashboard#/account/approvals/${id}"`)
    const decided = await decide(link, { decision: 'approve', reason: 'Within the plan.' })
    expect(decided.status, decided.text).toBe(200)
    expect(await stateOf(tenant, id)).toMatchObject({
      status: 'approved',
      approved_by: `recipient:${channel.recipients[0].id}`,
      approvals: [{ reason: 'Within the plan.' }],
    })
    expect((await approve(link)).status).toBe(409)
    expect((await world.get(link)).text).toContain('<h1>Approved</h1>')
  })

  test('is cancelled by a link that rejects it, and not sent to the broker', async () => {
    const tenant = await richTenant(world)
    await emailChannel(tenant)
    const id = await requestTrade(tenant)
    const link = await mailedLink()
    const rejected = await decide(link, { decision: 'reject', reason: 'Too risky' })
    expect(rejected.status).toBe(200)
    expect(rejected.text).toContain('<h1>Rejected</h1>')
    expect(await stateOf(tenant, id)).toMatchObject({
      status: 'cancelled',
      ended_by: expect.stringMatching(/^recipient:/),
    })
    expect((await approve(link)).status).toBe(409)
  })

  test('is not approved by a recipient whom the key that asked has added', async () => {
    const tenant = await richTenant(world)
    const requester = await anotherKey(world, tenant)
    await emailChannel({ headers: requester })
    const id = await requestTrade(tenant, requester)
    expect((await approve(await mailedLink())).status).toBe(403)
    expect(await stateOf(tenant, id)).toMatchObject({ status: 'pending_approval' })
  })
})
