import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { laneContract } from '../../../test/contract/lane.ts'
import type { LaneTask } from '../../modules/runs/lane.ts'
import { systemClock } from '../../platform/clock.ts'
import { createLiveLane, type LiveLaneDeps } from './ai-sdk.ts'
import { createOfflineLane } from './offline.ts'
import { type LaneProviderSettings, type ProviderSettings, readLaneSettings } from './settings.ts'

type ReceivedRequest = { url: string; headers: IncomingMessage['headers']; body: Record<string, unknown> }
type Reply = (response: ServerResponse, request: ReceivedRequest) => void

/** A model server on loopback. It answers each request with the next reply of its list and repeats the last one. */
async function startModelServer(...replies: Reply[]) {
  const requests: ReceivedRequest[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => {
      text += chunk
    })
    request.on('end', () => {
      const received = {
        url: request.url ?? '',
        headers: request.headers,
        body: JSON.parse(text) as Record<string, unknown>,
      }
      requests.push(received)
      replies[Math.min(requests.length, replies.length) - 1]!(response, received)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  }
  closers.push(close)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, seen: requests, close }
}

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** OpenAI's chat completion chunks, as OpenAI, OpenRouter, Ollama, vLLM and LiteLLM send them. */
const respondOpenAi =
  (pieces: string[], finish: string | null = 'stop', after?: (response: ServerResponse) => void): Reply =>
  (response) => {
    const send = (value: unknown) => response.write(`data: ${JSON.stringify(value)}\n\n`)
    const chunk = (delta: object, reason: string | null = null) =>
      send({
        id: 'c',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [{ index: 0, delta, finish_reason: reason }],
      })
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    pieces.forEach((content, i) => {
      chunk(i === 0 ? { role: 'assistant', content } : { content })
    })
    if (after) return after(response)
    if (finish) {
      chunk({}, finish)
      send({
        id: 'c',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [],
        usage: { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 },
      })
      response.write('data: [DONE]\n\n')
    }
    response.end()
  }

/** Anthropic's message events. */
const respondAnthropic =
  (pieces: string[], stop = 'end_turn', after?: (response: ServerResponse) => void): Reply =>
  (response) => {
    const send = (type: string, value: object) =>
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...value })}\n\n`)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    send('message_start', {
      message: {
        id: 'msg',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 800, output_tokens: 1 },
      },
    })
    send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
    for (const text of pieces) send('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
    if (after) return after(response)
    send('content_block_stop', { index: 0 })
    send('message_delta', { delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 200 } })
    send('message_stop', {})
    response.end()
  }

const respondStatus =
  (code: number, headers: Record<string, string> = {}): Reply =>
  (response) => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify({ error: { message: 'secret-key-123 is over its quota', type: 'error' } }))
  }
const neverRespond: Reply = () => {}
const stopAfterHalf = respondOpenAi(['Half'], null, () => {})
/** Only what never comes is waited for briefly: a busy machine may be late with the rest. */
const stallTimeoutFor = (reply: Reply) =>
  reply === neverRespond || reply === stopAfterHalf ? { stallTimeoutMs: 1_000 } : {}
const closeConnection: Reply = (response) => response.destroy()
const sendHtml: Reply = (response) =>
  response.writeHead(200, { 'content-type': 'text/html' }).end('<html>welcome</html>')
const sendInvalidJson = respondOpenAi(['Hal'], null, (response) => {
  response.write('data: {"choices": [oops\n\n')
  response.end()
})

const provider = (url: string, overrides: Partial<ProviderSettings> = {}): ProviderSettings => ({
  name: new URL(url).host,
  kind: 'openai-compatible',
  baseUrl: url,
  apiKey: 'secret-key-123',
  model: 'base-model',
  models: { 'coder-v1': 'code-model' },
  usdPerMillionInput: 2,
  usdPerMillionOutput: 10,
  ...overrides,
})

const settings = (
  providers: ProviderSettings[],
  overrides: Partial<LaneProviderSettings> = {},
): LaneProviderSettings => ({
  providers,
  lanes: {},
  attemptTimeoutMs: 60_000,
  stallTimeoutMs: 60_000,
  retries: 0,
  breaker: { failureThreshold: 3, coolDownMs: 60_000 },
  ...overrides,
})

const createTestLane = (
  providers: ProviderSettings[],
  overrides: Partial<LaneProviderSettings> = {},
  deps: Partial<LiveLaneDeps> = {},
) => createLiveLane(settings(providers, overrides), { clock: systemClock, ...deps })

const task = (overrides: Partial<LaneTask> = {}): LaneTask => ({
  runId: 'run_1',
  agentId: 'writer-v1',
  task: 'Write a line about rivers.',
  context: [],
  deadline: new Date(Date.now() + 60_000),
  signal: new AbortController().signal,
  ...overrides,
})

/** The text of the last message of a request, in either wire format. */
function readLastMessage({ body }: ReceivedRequest): string {
  const { content } = (body.messages as { content: string | { text: string }[] }[]).at(-1)!
  return (typeof content === 'string' ? content : content.map((part) => part.text).join(' ')).slice(0, 200)
}

laneContract('live over an OpenAI-compatible server', async () => {
  const server = await startModelServer((response, request) =>
    respondOpenAi(['I heard: ', readLastMessage(request)])(response, request),
  )
  return {
    lane: createTestLane([provider(server.url)]),
    close: server.close,
  }
})

laneContract('live over Anthropic', async () => {
  const server = await startModelServer((response, request) =>
    respondAnthropic(['I heard: ', readLastMessage(request)])(response, request),
  )
  const lane = createTestLane([provider(server.url, { kind: 'anthropic' })])
  return { lane, close: server.close }
})

laneContract('offline', async () => ({ lane: createOfflineLane(), close: async () => {} }))

describe('wire format', () => {
  test('OpenAI: sends model, system prompt, temperature, token limit and key; reads output, usage and cost', async () => {
    const server = await startModelServer(respondOpenAi(['A river ', 'runs.']))
    const result = await createTestLane([provider(server.url)], {
      lanes: { 'coder-v1': { maxOutputTokens: 77 } },
    }).execute(task({ agentId: 'coder-v1', context: ['We spoke of lakes.'] }))
    expect(result).toMatchObject({
      ok: true,
      output: 'A river runs.',
      model: 'code-model',
      mode: 'live',
      usage: { inputTokens: 1000, outputTokens: 500, costUsd: 0.007 },
      fallbacks: [],
    })
    const [request] = server.seen
    expect(request).toMatchObject({
      url: '/v1/chat/completions',
      body: { model: 'code-model', max_tokens: 77, temperature: 0.1, stream: true },
    })
    expect(request!.headers.authorization).toBe('Bearer secret-key-123')
    const messages = request!.body.messages as { role: string; content: string }[]
    expect(messages[0]).toMatchObject({ role: 'system', content: expect.stringContaining('software engineer') })
    expect(messages[1]!.content).toContain('We spoke of lakes.')
    expect(messages.at(-1)).toEqual({ role: 'user', content: 'Write a line about rivers.' })
  })

  test('Anthropic: sends its key header and reads its events', async () => {
    const server = await startModelServer(respondAnthropic(['A river ', 'runs.']))
    const result = await createTestLane([provider(server.url, { kind: 'anthropic' })]).execute(task())
    expect(result).toMatchObject({
      ok: true,
      output: 'A river runs.',
      usage: { inputTokens: 800, outputTokens: 200, costUsd: 0.0036 },
    })
    expect(server.seen[0]).toMatchObject({ url: '/v1/messages', body: { model: 'base-model', max_tokens: 1600 } })
    expect(server.seen[0]!.headers['x-api-key']).toBe('secret-key-123')
  })

  test('a model set by an operator overrides the provider’s model', async () => {
    const server = await startModelServer(respondOpenAi(['Yes.']))
    await createTestLane(
      [provider(server.url)],
      {},
      { findModel: (agentId) => (agentId === 'coder-v1' ? 'operator-model' : null) },
    ).execute(task({ agentId: 'coder-v1' }))
    expect(server.seen[0]!.body.model).toBe('operator-model')
  })
})

describe('a provider failure is a failed result, never an exception', () => {
  const cases: [string, Reply, object][] = [
    [
      'answers 429',
      respondStatus(429),
      { reason: 'unavailable', retryable: true, message: 'The model provider answered 429.' },
    ],
    ['answers 500', respondStatus(500), { reason: 'unavailable', retryable: true }],
    ['answers 529', respondStatus(529), { reason: 'unavailable', retryable: true }],
    ['rejects the API key', respondStatus(401), { reason: 'unavailable', retryable: false }],
    ['refuses the request', respondStatus(400), { reason: 'refused', retryable: false }],
    ['closes the connection before any output', closeConnection, { reason: 'unavailable', retryable: true }],
    ['never responds', neverRespond, { reason: 'timeout', retryable: true, message: 'The model stopped responding.' }],
    ['stops responding after half an answer', stopAfterHalf, { reason: 'timeout', retryable: true }],
    [
      'ends the stream after half an answer',
      respondOpenAi(['Half an ans'], null),
      { reason: 'invalid_output', retryable: true },
    ],
    [
      'closes the connection after half an answer',
      respondOpenAi(['Half'], null, (response) => setTimeout(() => response.destroy(), 20)),
      { reason: 'invalid_output', retryable: true },
    ],
    ['sends invalid JSON in the stream', sendInvalidJson, { reason: 'invalid_output', retryable: true }],
    ['sends a web page', sendHtml, { reason: 'invalid_output', retryable: true }],
    ['sends a blank answer', respondOpenAi(['  \n']), { reason: 'invalid_output', retryable: true }],
    ['filters the content', respondOpenAi(['I'], 'content_filter'), { reason: 'refused', retryable: false }],
    [
      'exceeds the output limit',
      respondOpenAi(
        Array.from({ length: 70 }, () => 'x'.repeat(1000)),
        null,
        () => {},
      ),
      { reason: 'invalid_output' },
    ],
  ]
  test.each(cases)('it %s', async (_name, reply, expected) => {
    const server = await startModelServer(reply)
    const result = await createTestLane([provider(server.url)], stallTimeoutFor(reply)).execute(task())
    expect(result).toMatchObject({ ok: false, ...expected })
    expect(JSON.stringify(result)).not.toContain('secret-key')
  })

  test('Anthropic: an error event or a closed connection in mid-stream is a failure', async () => {
    const overloaded = respondAnthropic(['Half'], 'end_turn', (response) => {
      response.write(
        `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })}\n\n`,
      )
      response.end()
    })
    const truncated = respondAnthropic(['Half'], 'end_turn', (response) => setTimeout(() => response.destroy(), 20))
    for (const reply of [overloaded, truncated, respondStatus(529), neverRespond]) {
      const server = await startModelServer(reply)
      const result = await createTestLane(
        [provider(server.url, { kind: 'anthropic' })],
        stallTimeoutFor(reply),
      ).execute(task())
      expect(result).toMatchObject({ ok: false, retryable: true })
    }
  })

  test('a provider that refuses connections is unavailable', async () => {
    const server = await startModelServer(neverRespond)
    await server.close()
    expect(await createTestLane([provider(server.url)]).execute(task())).toMatchObject({
      ok: false,
      reason: 'unavailable',
      retryable: true,
    })
  })

  test('invalid JSON is a failure when JSON was requested; fenced JSON is returned without its fence', async () => {
    const jsonTask = task({ task: 'List two rivers. Return JSON only.' })
    const invalidServer = await startModelServer(respondOpenAi(['Sure! Here is your JSON: {"rivers": [']))
    expect(await createTestLane([provider(invalidServer.url)]).execute(jsonTask)).toMatchObject({
      ok: false,
      reason: 'invalid_output',
    })
    const fencedServer = await startModelServer(respondOpenAi(['```json\n{"rivers":', '["Rhine"]}\n```']))
    expect(await createTestLane([provider(fencedServer.url)]).execute(jsonTask)).toMatchObject({
      ok: true,
      output: '{"rivers":["Rhine"]}',
    })
  })
})

describe('retry, fallback, deadline', () => {
  test('a 429 is retried after the delay the provider asks for', async () => {
    const server = await startModelServer(respondStatus(429, { 'retry-after': '0' }), respondOpenAi(['Now.']))
    expect(await createTestLane([provider(server.url)], { retries: 1 }).execute(task())).toMatchObject({
      ok: true,
      output: 'Now.',
      fallbacks: [],
    })
    expect(server.seen).toHaveLength(2)
  })

  test('a failure that is not retryable is not retried', async () => {
    const server = await startModelServer(respondStatus(400))
    await createTestLane([provider(server.url)], { retries: 3 }).execute(task())
    expect(server.seen).toHaveLength(1)
  })

  test('the fallback executes the task, and the result lists the failed providers with their reasons', async () => {
    const failingServer = await startModelServer(respondStatus(500))
    const workingServer = await startModelServer(respondAnthropic(['From the second.']))
    const result = await createTestLane([
      provider(failingServer.url),
      provider(workingServer.url, { kind: 'anthropic', model: 'second-model', models: {} }),
    ]).execute(task())
    expect(result).toMatchObject({
      ok: true,
      output: 'From the second.',
      model: 'second-model',
      fallbacks: [
        { provider: new URL(failingServer.url).host, model: 'base-model', reason: 'The model provider answered 500.' },
      ],
    })
  })

  test('the offline lane can be the last resort, and the result says offline', async () => {
    const failingServer = await startModelServer(respondStatus(503))
    const result = await createTestLane([provider(failingServer.url)], {}, { lastResort: createOfflineLane() }).execute(
      task(),
    )
    expect(result).toMatchObject({
      ok: true,
      mode: 'offline',
      provider: 'offline',
      fallbacks: [{ reason: 'The model provider answered 503.' }],
    })
  })

  test('aborting the run ends the attempt at once, and no fallback starts after it', async () => {
    const hangingServer = await startModelServer(neverRespond)
    const unusedServer = await startModelServer(respondOpenAi(['Too late.']))
    const run = new AbortController()
    setTimeout(() => run.abort(), 60)
    // The timeouts are longer than the test, so only the abort can end the attempt.
    const result = await createTestLane([provider(hangingServer.url), provider(unusedServer.url)], {
      stallTimeoutMs: 120_000,
      attemptTimeoutMs: 120_000,
    }).execute(task({ signal: run.signal }))
    expect(result).toMatchObject({
      ok: false,
      reason: 'timeout',
      retryable: true,
      message: 'The run reached its deadline.',
    })
    expect(unusedServer.seen).toHaveLength(0)
  })

  test('a retry is skipped when its delay would exceed the deadline', async () => {
    const server = await startModelServer(respondStatus(429, { 'retry-after': '9' }))
    const startedAt = performance.now()
    await createTestLane([provider(server.url)], { retries: 2 }).execute(
      task({ deadline: new Date(Date.now() + 8_000) }),
    )
    expect(performance.now() - startedAt).toBeLessThan(8_000)
    expect(server.seen).toHaveLength(1)
  })
})

describe('circuit breaker', () => {
  test('a failing provider is skipped until its cool-down is over', async () => {
    const clock = createTestClock()
    const failingServer = await startModelServer(respondStatus(500), respondStatus(500), respondOpenAi(['Back.']))
    const workingServer = await startModelServer(respondOpenAi(['Second.']))
    const lane = createTestLane(
      [provider(failingServer.url), provider(workingServer.url)],
      { breaker: { failureThreshold: 2, coolDownMs: 1000 } },
      { clock },
    )
    const run = () => lane.execute(task({ deadline: new Date('2027-01-01T00:00:00Z') }))
    for (let i = 0; i < 4; i++) expect(await run()).toMatchObject({ ok: true, output: 'Second.' })
    expect(failingServer.seen).toHaveLength(2)
    expect(await run()).toMatchObject({ fallbacks: [{ reason: 'Skipped after repeated failures.' }] })
    clock.advance(1001)
    expect(await run()).toMatchObject({ ok: true, output: 'Back.', fallbacks: [] })
  })

  const breakerAfter = async (reply: Reply, laneTask: Partial<LaneTask> = {}) => {
    const server = await startModelServer(...Array.from({ length: 6 }, () => reply), respondOpenAi(['A joke.']))
    const breaker = { failureThreshold: 2, coolDownMs: 60_000 }
    const lane = createTestLane([provider(server.url)], { breaker, ...stallTimeoutFor(reply) })
    for (let i = 0; i < 6; i++) expect(await lane.execute(task(laneTask))).toMatchObject({ ok: false })
    return { result: await lane.execute(task()), calls: server.seen.length }
  }

  test.each<[string, Reply, Partial<LaneTask>]>([
    ['an output without a letter', respondOpenAi(['...']), {}],
    ['an output with a NUL', respondOpenAi(['A\0joke']), {}],
    ['an output with half an emoji', respondOpenAi(['A joke \ud83d']), {}],
    ['an output over the limit', respondOpenAi(Array.from({ length: 70 }, () => 'x'.repeat(1000))), {}],
    ['an output that is not the JSON asked for', respondOpenAi(['Sure!']), { task: 'Name a river. Return JSON only.' }],
    ['an output cut for its content', respondOpenAi(['I'], 'content_filter'), {}],
    ['a task that the provider refuses', respondStatus(400), {}],
    ['a flood that the provider answers with 429', respondStatus(429), {}],
  ])('%s fails its own run and leaves the provider open to others', async (_name, reply, laneTask) => {
    expect(await breakerAfter(reply, laneTask)).toMatchObject({ result: { ok: true, output: 'A joke.' }, calls: 7 })
  })

  test.each<[string, Reply]>([
    ['no connection', closeConnection],
    ['no answer in time', neverRespond],
    ['an answer of 503', respondStatus(503)],
    ['half an answer', respondOpenAi(['Half an ans'], null)],
  ])('%s is a fault of the provider, and after two of them it is skipped', async (_name, reply) => {
    expect(await breakerAfter(reply)).toMatchObject({ result: { ok: false }, calls: 2 })
  })
})

describe('settings from the environment', () => {
  const agents = ['coder-v1', 'default']

  test('are undefined without a provider', () => {
    expect(readLaneSettings({}, agents)).toBeUndefined()
  })

  test('include provider, per-lane model, prices and fallback', () => {
    const laneSettings = readLaneSettings(
      {
        LANE_PROVIDER: 'openai-compatible',
        LANE_BASE_URL: 'http://127.0.0.1:11434/v1/',
        LANE_MODEL: 'small',
        LANE_MODEL_CODER_V1: 'big',
        LANE_USD_PER_MILLION_INPUT: '0.5',
        LANE_RETRIES: '2',
        LANE_FALLBACK_PROVIDER: 'anthropic',
        LANE_FALLBACK_API_KEY: 'k',
        LANE_FALLBACK_MODEL: 'other',
      },
      agents,
    )!
    expect(laneSettings.retries).toBe(2)
    expect(laneSettings.providers).toMatchObject([
      {
        name: '127.0.0.1:11434',
        baseUrl: 'http://127.0.0.1:11434/v1',
        apiKey: undefined,
        model: 'small',
        models: { 'coder-v1': 'big' },
        usdPerMillionInput: 0.5,
      },
      { kind: 'anthropic', name: 'api.anthropic.com', apiKey: 'k', model: 'other' },
    ])
  })

  test('invalid settings are refused at startup', () => {
    expect(() => readLaneSettings({ LANE_PROVIDER: 'oracle' }, agents)).toThrow(/LANE_PROVIDER must be/)
    expect(() => readLaneSettings({ LANE_PROVIDER: 'openai-compatible', LANE_MODEL: 'm' }, agents)).toThrow(
      /LANE_BASE_URL/,
    )
    expect(() => readLaneSettings({ LANE_PROVIDER: 'anthropic' }, agents)).toThrow(/LANE_MODEL must name/)
    expect(() => readLaneSettings({ LANE_PROVIDER: 'anthropic', LANE_MODEL: 'm', LANE_RETRIES: '-1' }, agents)).toThrow(
      /LANE_RETRIES/,
    )
  })
})
