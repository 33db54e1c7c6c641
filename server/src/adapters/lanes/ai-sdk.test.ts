import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { laneContract } from '../../../test/contract/lane.ts'
import type { LaneTask } from '../../modules/runs/lane.ts'
import { systemClock } from '../../platform/clock.ts'
import { createLiveLane, type LiveLaneDeps } from './ai-sdk.ts'
import { createOfflineLane } from './offline.ts'
import { createBreaker } from './resilience.ts'
import { type LaneProviderSettings, type ProviderSettings, readLaneSettings } from './settings.ts'

type Seen = { url: string; headers: IncomingMessage['headers']; body: Record<string, unknown> }
type Reply = (response: ServerResponse, request: Seen) => void

/** A model server on loopback. It answers each request with the next reply of its list; the last one repeats. */
async function startModelServer(...replies: Reply[]) {
  const seen: Seen[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => {
      text += chunk
    })
    request.on('end', () => {
      const heard = {
        url: request.url ?? '',
        headers: request.headers,
        body: JSON.parse(text) as Record<string, unknown>,
      }
      seen.push(heard)
      replies[Math.min(seen.length, replies.length) - 1]!(response, heard)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  }
  open.push(close)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, seen, close }
}

const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

/** OpenAI's chat completion chunks, as OpenAI, OpenRouter, Ollama, vLLM and LiteLLM send them. */
const openAi =
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
    pieces.forEach((content, at) => {
      chunk(at === 0 ? { role: 'assistant', content } : { content })
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
const anthropic =
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

const status =
  (code: number, headers: Record<string, string> = {}): Reply =>
  (response) => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify({ error: { message: 'secret-key-123 is over its quota', type: 'error' } }))
  }
const hang: Reply = () => {}
const slam: Reply = (response) => response.destroy()
const html: Reply = (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>welcome</html>')
const garbled = openAi(['Hal'], null, (response) => {
  response.write('data: {"choices": [oops\n\n')
  response.end()
})

const provider = (url: string, over: Partial<ProviderSettings> = {}): ProviderSettings => ({
  name: new URL(url).host,
  kind: 'openai-compatible',
  baseUrl: url,
  apiKey: 'secret-key-123',
  model: 'base-model',
  models: { 'coder-v1': 'code-model' },
  usdPerMillionInput: 2,
  usdPerMillionOutput: 10,
  ...over,
})

const settings = (providers: ProviderSettings[], over: Partial<LaneProviderSettings> = {}): LaneProviderSettings => ({
  providers,
  lanes: {},
  attemptTimeoutMs: 2000,
  stallTimeoutMs: 150,
  retries: 0,
  breaker: { failures: 3, coolDownMs: 60_000 },
  ...over,
})

const live = (
  providers: ProviderSettings[],
  over: Partial<LaneProviderSettings> = {},
  deps: Partial<LiveLaneDeps> = {},
) => createLiveLane(settings(providers, over), { clock: systemClock, ...deps })

const task = (over: Partial<LaneTask> = {}): LaneTask => ({
  runId: 'run_1',
  agentId: 'writer-v1',
  task: 'Write a line about rivers.',
  context: [],
  deadline: new Date(Date.now() + 5000),
  signal: new AbortController().signal,
  ...over,
})

/** What the last message of a request says, in either wire format. */
function asked({ body }: Seen): string {
  const { content } = (body.messages as { content: string | { text: string }[] }[]).at(-1)!
  return (typeof content === 'string' ? content : content.map((part) => part.text).join(' ')).slice(0, 200)
}

laneContract('live over an OpenAI-compatible server', async () => {
  const server = await startModelServer((response, request) => openAi(['I heard: ', asked(request)])(response, request))
  return { lane: live([provider(server.url)], { stallTimeoutMs: 5000, attemptTimeoutMs: 5000 }), close: server.close }
})

laneContract('live over Anthropic', async () => {
  const server = await startModelServer((response, request) =>
    anthropic(['I heard: ', asked(request)])(response, request),
  )
  const lane = live([provider(server.url, { kind: 'anthropic' })], { stallTimeoutMs: 5000, attemptTimeoutMs: 5000 })
  return { lane, close: server.close }
})

laneContract('offline', async () => ({ lane: createOfflineLane(), close: async () => {} }))

describe('what goes over the wire', () => {
  test('OpenAI: model, system prompt, temperature, token limit, key; the answer with usage and cost', async () => {
    const server = await startModelServer(openAi(['A river ', 'runs.']))
    const result = await live([provider(server.url)], { lanes: { 'coder-v1': { maxOutputTokens: 77 } } }).execute(
      task({ agentId: 'coder-v1', context: ['We spoke of lakes.'] }),
    )
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

  test('Anthropic: its own header, its own events', async () => {
    const server = await startModelServer(anthropic(['A river ', 'runs.']))
    const result = await live([provider(server.url, { kind: 'anthropic' })]).execute(task())
    expect(result).toMatchObject({
      ok: true,
      output: 'A river runs.',
      usage: { inputTokens: 800, outputTokens: 200, costUsd: 0.0036 },
    })
    expect(server.seen[0]).toMatchObject({ url: '/v1/messages', body: { model: 'base-model', max_tokens: 1600 } })
    expect(server.seen[0]!.headers['x-api-key']).toBe('secret-key-123')
  })

  test('a model set by an operator goes before the provider’s own', async () => {
    const server = await startModelServer(openAi(['Yes.']))
    await live(
      [provider(server.url)],
      {},
      { modelOf: (agentId) => (agentId === 'coder-v1' ? 'operator-model' : null) },
    ).execute(task({ agentId: 'coder-v1' }))
    expect(server.seen[0]!.body.model).toBe('operator-model')
  })
})

describe('a provider that misbehaves is a result that says so, never an exception', () => {
  const cases: [string, Reply, object][] = [
    [
      'answers 429',
      status(429),
      { reason: 'unavailable', retryable: true, message: 'The model provider answered 429.' },
    ],
    ['answers 500', status(500), { reason: 'unavailable', retryable: true }],
    ['answers 529', status(529), { reason: 'unavailable', retryable: true }],
    ['rejects our key', status(401), { reason: 'unavailable', retryable: false }],
    ['refuses the request', status(400), { reason: 'refused', retryable: false }],
    ['cuts the connection before a word', slam, { reason: 'unavailable', retryable: true }],
    ['hangs without a word', hang, { reason: 'timeout', retryable: true, message: 'The model fell silent.' }],
    ['falls silent after half an answer', openAi(['Half'], null, () => {}), { reason: 'timeout', retryable: true }],
    [
      'ends the stream after half an answer',
      openAi(['Half an ans'], null),
      { reason: 'invalid_output', retryable: true },
    ],
    [
      'cuts the connection after half an answer',
      openAi(['Half'], null, (response) => setTimeout(() => response.destroy(), 20)),
      { reason: 'invalid_output', retryable: true },
    ],
    ['sends broken JSON in the stream', garbled, { reason: 'invalid_output', retryable: true }],
    ['sends a web page', html, { reason: 'invalid_output', retryable: true }],
    ['answers nothing', openAi(['  \n']), { reason: 'invalid_output', retryable: true }],
    ['filters the content', openAi(['I'], 'content_filter'), { reason: 'refused', retryable: false }],
    [
      'never stops talking',
      openAi(
        Array.from({ length: 70 }, () => 'x'.repeat(1000)),
        null,
        () => {},
      ),
      { reason: 'invalid_output' },
    ],
  ]
  test.each(cases)('it %s', async (_name, reply, expected) => {
    const server = await startModelServer(reply)
    const result = await live([provider(server.url)]).execute(task())
    expect(result).toMatchObject({ ok: false, ...expected })
    expect(JSON.stringify(result)).not.toContain('secret-key')
  })

  test('Anthropic: an error in mid-stream and a cut are no answers either', async () => {
    const overloaded = anthropic(['Half'], 'end_turn', (response) => {
      response.write(
        `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })}\n\n`,
      )
      response.end()
    })
    const cut = anthropic(['Half'], 'end_turn', (response) => setTimeout(() => response.destroy(), 20))
    for (const reply of [overloaded, cut, status(529), hang]) {
      const server = await startModelServer(reply)
      const result = await live([provider(server.url, { kind: 'anthropic' })]).execute(task())
      expect(result).toMatchObject({ ok: false, retryable: true })
    }
  })

  test('a provider nobody listens at is unavailable', async () => {
    const server = await startModelServer(hang)
    await server.close()
    expect(await live([provider(server.url)]).execute(task())).toMatchObject({
      ok: false,
      reason: 'unavailable',
      retryable: true,
    })
  })

  test('JSON that is none is not delivered; JSON in a fence is delivered bare', async () => {
    const wish = task({ task: 'List two rivers. Return JSON only.' })
    const lying = await startModelServer(openAi(['Sure! Here is your JSON: {"rivers": [']))
    expect(await live([provider(lying.url)]).execute(wish)).toMatchObject({ ok: false, reason: 'invalid_output' })
    const fenced = await startModelServer(openAi(['```json\n{"rivers":', '["Rhine"]}\n```']))
    expect(await live([provider(fenced.url)]).execute(wish)).toMatchObject({ ok: true, output: '{"rivers":["Rhine"]}' })
  })
})

describe('retry, fallback, deadline', () => {
  test('a 429 is tried again after the pause the provider asks for', async () => {
    const server = await startModelServer(status(429, { 'retry-after': '0' }), openAi(['Now.']))
    expect(await live([provider(server.url)], { retries: 1 }).execute(task())).toMatchObject({
      ok: true,
      output: 'Now.',
      fallbacks: [],
    })
    expect(server.seen).toHaveLength(2)
  })

  test('what cannot succeed is not tried again', async () => {
    const server = await startModelServer(status(400))
    await live([provider(server.url)], { retries: 3 }).execute(task())
    expect(server.seen).toHaveLength(1)
  })

  test('the fallback does the work and the result names who failed before it and why', async () => {
    const broken = await startModelServer(status(500))
    const sound = await startModelServer(anthropic(['From the second.']))
    const result = await live([
      provider(broken.url),
      provider(sound.url, { kind: 'anthropic', model: 'second-model', models: {} }),
    ]).execute(task())
    expect(result).toMatchObject({
      ok: true,
      output: 'From the second.',
      model: 'second-model',
      fallbacks: [
        { provider: new URL(broken.url).host, model: 'base-model', reason: 'The model provider answered 500.' },
      ],
    })
  })

  test('the offline lane can be the last resort, and the result says offline', async () => {
    const broken = await startModelServer(status(503))
    const result = await live([provider(broken.url)], {}, { lastResort: createOfflineLane() }).execute(task())
    expect(result).toMatchObject({
      ok: true,
      mode: 'offline',
      provider: 'offline',
      fallbacks: [{ reason: 'The model provider answered 503.' }],
    })
  })

  test('the end of the run ends the attempt at once, and no fallback starts after it', async () => {
    const slow = await startModelServer(hang)
    const second = await startModelServer(openAi(['Too late.']))
    const run = new AbortController()
    setTimeout(() => run.abort(), 60)
    // Longer than this test may take: only the abort can end it.
    const result = await live([provider(slow.url), provider(second.url)], {
      stallTimeoutMs: 120_000,
      attemptTimeoutMs: 120_000,
    }).execute(task({ signal: run.signal }))
    expect(result).toMatchObject({
      ok: false,
      reason: 'timeout',
      retryable: true,
      message: 'The run reached its deadline.',
    })
    expect(second.seen).toHaveLength(0)
  })

  test('no pause is begun that the deadline would not outlast', async () => {
    const server = await startModelServer(status(429, { 'retry-after': '9' }))
    const started = performance.now()
    await live([provider(server.url)], { retries: 2 }).execute(task({ deadline: new Date(Date.now() + 500) }))
    expect(performance.now() - started).toBeLessThan(8000)
    expect(server.seen).toHaveLength(1)
  })
})

describe('the breaker', () => {
  test('opens after repeated failures, lets one probe through after the pause, closes on success', () => {
    const clock = createTestClock()
    const breaker = createBreaker({ clock, failures: 3, coolDownMs: 1000 })
    for (let at = 0; at < 3; at++) {
      expect(breaker.admits()).toBe(true)
      breaker.failed()
    }
    expect(breaker.admits()).toBe(false)
    clock.advance(1001)
    expect(breaker.admits()).toBe(true)
    expect(breaker.admits()).toBe(false)
    breaker.failed()
    expect(breaker.admits()).toBe(false)
    clock.advance(1001)
    expect(breaker.admits()).toBe(true)
    breaker.succeeded()
    expect(breaker.admits()).toBe(true)
    expect(breaker.admits()).toBe(true)
  })

  test('a probe that tells nothing gives its place back', () => {
    const clock = createTestClock()
    const breaker = createBreaker({ clock, failures: 1, coolDownMs: 10 })
    breaker.failed()
    clock.advance(11)
    expect(breaker.admits()).toBe(true)
    breaker.undecided()
    expect(breaker.admits()).toBe(true)
  })

  test('a provider that is down is not even asked, until it has had its pause', async () => {
    const clock = createTestClock()
    const down = await startModelServer(status(500), status(500), openAi(['Back.']))
    const sound = await startModelServer(openAi(['Second.']))
    const lane = live(
      [provider(down.url), provider(sound.url)],
      { breaker: { failures: 2, coolDownMs: 1000 } },
      { clock },
    )
    const run = () => lane.execute(task({ deadline: new Date('2027-01-01T00:00:00Z') }))
    for (let at = 0; at < 4; at++) expect(await run()).toMatchObject({ ok: true, output: 'Second.' })
    expect(down.seen).toHaveLength(2)
    expect(await run()).toMatchObject({ fallbacks: [{ reason: 'Left alone after repeated failures.' }] })
    clock.advance(1001)
    expect(await run()).toMatchObject({ ok: true, output: 'Back.', fallbacks: [] })
  })
})

describe('settings from the environment', () => {
  const agents = ['coder-v1', 'default']

  test('without a provider there are none', () => {
    expect(readLaneSettings({}, agents)).toBeUndefined()
  })

  test('provider, per-lane model, prices and fallback are read', () => {
    const read = readLaneSettings(
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
    expect(read.retries).toBe(2)
    expect(read.providers).toMatchObject([
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

  test('what cannot work is said before anything is sold', () => {
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
