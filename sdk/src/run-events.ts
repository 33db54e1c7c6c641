import type { EventOptions } from './client-types.ts'
import { CountersignError } from './errors.ts'
import type { RunEvent } from './generated/api.ts'
import { isObject, type Transport } from './http.ts'
import { retryDelayMs, sleep } from './retry.ts'

/** The service sends a comment every 15 seconds; a connection that is silent for longer is dead. */
const SILENCE_MS = 45_000
/** After this many connections in a row without an event it is an error: about a minute. */
const MAX_FAILURES = 15
/** An event has at most some thousand characters. */
const MAX_STREAM_CHARACTERS = 64 * 1024

/**
 * The states of a run, each once, until it has ended. A connection that drops is opened again after the last event that
 * arrived. An answer that says that there is nothing to read is an error, and so are many connections that fail in a row.
 */
export async function* readRunEvents(
  transport: Transport,
  runId: string,
  { signal, onText }: EventOptions = {},
): AsyncGenerator<RunEvent, void, undefined> {
  let lastId: string | undefined
  let text = ''
  for (let attempt = 1; ; attempt++) {
    let failure: unknown
    try {
      for await (const event of openStream(transport, runId, lastId, signal)) {
        attempt = 1
        if (event.name === 'text') {
          text = text.slice(0, event.data.offset) + event.data.text
          onText?.(text)
        } else {
          lastId = event.id
          yield event.data
        }
      }
    } catch (error) {
      if (signal?.aborted || !isTransient(error)) throw error
      failure = error
    }
    if (lastId === LAST_ID) return
    if (failure !== undefined && attempt >= MAX_FAILURES) throw failure
    await sleep(retryDelayMs(attempt, 0), signal)
  }
}

/** The id of the event with which a run ends. */
const LAST_ID = '3'

const isTransient = (error: unknown) =>
  !(error instanceof CountersignError) || error.status === 0 || error.status === 429 || error.status >= 500

async function* openStream(
  transport: Transport,
  runId: string,
  lastId: string | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent, void, undefined> {
  const silence = new AbortController()
  const restart = () => setTimeout(() => silence.abort(), SILENCE_MS)
  let timer = restart()
  try {
    const response = await transport.open(`/api/runs/${encodeURIComponent(runId)}/events`, {
      headers: { accept: 'text/event-stream', ...(lastId !== undefined && { 'last-event-id': lastId }) },
      signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal,
    })
    if (response.status !== 200 || !response.body) {
      const body: unknown = await response.json().catch(() => ({}))
      throw new CountersignError(response.status, isObject(body) ? body : {})
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      clearTimeout(timer)
      timer = restart()
      text += value
      if (text.length > MAX_STREAM_CHARACTERS) throw new CountersignError(0, { message: 'The stream is too long.' })
      const blocks = text.split('\n\n')
      text = blocks.pop()!
      for (const block of blocks) {
        const event = parseEvent(block)
        if (event) yield event
      }
    }
  } finally {
    clearTimeout(timer)
    silence.abort()
  }
}

type StreamEvent =
  | { name: 'state'; id: string; data: RunEvent }
  | { name: 'text'; data: { offset: number; text: string } }

function parseEvent(block: string): StreamEvent | undefined {
  const fields = new Map(
    block.split('\n').map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trimStart()]
    }),
  )
  const [name, id, data] = [fields.get('event'), fields.get('id'), fields.get('data')]
  if (data === undefined) return undefined
  if (name === 'text') return { name, data: JSON.parse(data) }
  return name === 'state' && id !== undefined ? { name, id, data: JSON.parse(data) as RunEvent } : undefined
}
