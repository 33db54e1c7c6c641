import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { laneReturning, startWorld, type World } from '../money/world.ts'

let world: World
let tenant: Awaited<ReturnType<World['tenantWithWallet']>>

beforeAll(async () => {
  world = await startWorld()
  tenant = await world.tenantWithWallet(1)
})
afterAll(() => world.close())
beforeEach(() => world.setLane(undefined))

const fromWallet = (task: string, agentId = 'comedian-v1') =>
  world.post('/api/run', { task, agent_id: agentId, payment: { wallet_id: tenant.walletId } }, tenant.headers)

const HALF = '\ud83d'
const escaped = (text: string) => JSON.stringify(text).slice(1, -1)

const bodies: [string, (text: string) => [string, string]][] = [
  ['the task of /api/run', (text) => ['/api/run', `{"task":"${text}"}`]],
  ['the task of /api/route', (text) => ['/api/route', `{"task":"${text}"}`]],
  ['the task of /api/routing-intel', (text) => ['/api/routing-intel', `{"task":"${text}"}`]],
  ['the input of /api/loop', (text) => ['/api/loop', `{"input":"${text}"}`]],
  ['a session id', (text) => ['/api/run', `{"task":"hello","session_id":"${text}"}`]],
  ['a property name', (text) => ['/api/run', `{"task":"hello","${text}":1}`]],
  ['a nested value', (text) => ['/api/loop', `{"input":"hello","proposed_actions":[{"type":"${text}"}]}`]],
]

test.each(bodies)('a NUL or half an emoji in %s is a 400', async (_place, build) => {
  for (const text of [escaped(`a${HALF}`), escaped('\udc00b'), '\\u0000', `a\\u0000b${escaped('😀')}`]) {
    const [path, body] = build(text)
    const response = await world.post(path, body, tenant.headers)
    expect({ text, status: response.status, error: response.body.error }).toEqual({
      text,
      status: 400,
      error: 'invalid_request',
    })
  }
})

test.each(['%00', '%ED%A0%BD', 'a%ED%B0%80', '%FF'])('%s in a query or a path is no 5xx', async (text) => {
  for (const path of [`/api/runs?after=${text}`, `/api/runs/${text}`, `/api/memory?session_id=${text}`, `/${text}`]) {
    const { status } = await world.get(path, tenant.headers)
    expect({ path, status: status < 500 && status >= (text === '%00' ? 400 : 200) }).toEqual({ path, status: true })
  }
})

test('emoji that a limit of length cuts in half do not fail a route, a 402 or a run of any lane', async () => {
  const { body: catalogue } = await world.get('/api/agents')
  for (const offset of [0, 1]) {
    // The router shows the words that decided, cut to 24 characters.
    const words = ['refunds', 'jokes', 'python'].map((word) => `${word}${'s'.repeat(offset)}${'😀'.repeat(20)}`)
    const task = `${'a'.repeat(offset)}${'😀'.repeat(900)} tell a joke about ${words.join(' ')} ${'😀'.repeat(900)}`
    for (const word of words) {
      const route = await world.post('/api/route', { task: word })
      expect([word, route.status, route.text.includes('\\ud83d')]).toEqual([word, 200, false])
      expect((await world.post('/api/run', { task: word })).status).toBe(402)
    }
    expect((await world.post('/api/route', { task })).status).toBe(200)
    expect((await world.post('/api/run', { task })).status).toBe(402)
    for (const { agent_id } of catalogue.agents as { agent_id: string }[]) {
      const run = await fromWallet(task, agent_id)
      expect({ agent_id, status: run.status }).toEqual({ agent_id, status: 200 })
      expect(run.body.output.isWellFormed()).toBe(true)
    }
  }
})

test.each([
  ['NUL', 'A joke.\0'],
  ['half an emoji', `A joke ${HALF}.`],
])(
  'an output with %s fails the run as invalid_output at once, uncharged, and releases the money',
  async (_name, output) => {
    world.setLane(laneReturning(output))
    const before = await world.balanceOf(tenant)
    const run = await fromWallet('Tell a joke about clocks.')
    expect(run.body).toMatchObject({ status: 'failed', charged: false, stage: 'execute', receipt: { charged: false } })
    expect(run.body.receipt.settlement.reason).toBe('invalid_output')
    expect(run.status).toBe(500)
    expect(await world.balanceOf(tenant)).toEqual(before)

    const payer = await world.payer(1)
    const { payment, answer: paid } = await world.pay(payer, '/api/run', {
      task: 'Tell a joke.',
      agent_id: 'comedian-v1',
    })
    expect(paid.body).toMatchObject({ status: 'failed', charged: false })
    const again = await world.post('/api/run', { task: 'Tell a joke.', agent_id: 'comedian-v1' }, payment)
    expect([again.status, again.text]).toEqual([500, paid.text])
    expect(await world.balance(payer.address)).toBe(1_000_000n)
  },
)

/** Makes the database refuse to store a result, as it would a value that no column can hold. */
async function refuseResults<T>(work: () => Promise<T>): Promise<T> {
  await sql
    .raw(`create function refuse_result() returns trigger language plpgsql as $$ begin
      if new.state in ('settling', 'completed') then raise exception 'no room' using errcode = '22P05'; end if;
      return new; end $$;
    create trigger refuse_result before update on open_runs for each row execute function refuse_result();
    create trigger refuse_result before insert on ended_runs for each row execute function refuse_result();`)
    .execute(world.db)
  try {
    return await work()
  } finally {
    await sql.raw('drop function refuse_result() cascade').execute(world.db)
  }
}

test('a result that cannot be stored ends the run at once: uncharged, with a receipt, the money released', async () => {
  const body = { task: 'Tell a joke about trains.', agent_id: 'comedian-v1' }
  const payer = await world.payer(1)
  const before = await world.balanceOf(tenant)
  const { wallet, x402 } = await refuseResults(async () => ({
    wallet: await fromWallet(body.task),
    x402: await world.pay(payer, '/api/run', body),
  }))
  for (const response of [wallet, x402.answer]) {
    expect(response.status).toBe(500)
    expect(response.body).toMatchObject({ status: 'failed', charged: false, receipt: { charged: false } })
    expect(response.body.receipt.settlement.reason).toBe('result_not_stored')
  }
  expect(await world.balanceOf(tenant)).toEqual(before)
  expect(await world.balance(payer.address)).toBe(1_000_000n)
  const again = await world.post('/api/run', body, x402.payment)
  expect([again.status, again.text]).toEqual([500, x402.answer.text])
  const { rows } = await sql`select id from open_runs`.execute(world.db)
  expect(rows).toEqual([])
})
