import type { OpenAICompatibleProvider } from '@ai-sdk/openai-compatible'
import type { LaneTask, LaneUsage } from '../../modules/runs/lane.ts'
import { isStorableText } from '../../platform/storable-text.ts'
import { readOutputFormat } from './offline/brief.ts'
import type { LaneTuning, ProviderSettings } from './settings.ts'

/** A provider's model, called as it is: one stream of text needs nothing of what frameworks put above it. */
export type LanguageModel = ReturnType<OpenAICompatibleProvider>

/** The result of one attempt at one provider: text and usage, or the reason of the failure. */
export type CallOutcome =
  | { ok: true; text: string; usage: LaneUsage; finishedEarly?: boolean }
  | {
      ok: false
      reason: 'timeout' | 'refused' | 'unavailable' | 'invalid_output'
      /** Shown to the caller, so it never repeats a provider's message, which may contain a secret. */
      message: string
      /** Whether a retry at the same provider may succeed. */
      retryable: boolean
      retryAfterMs?: number
      /** Whether the provider failed: not reached, cut off, 5xx or too slow. An output that is no use is not its fault. */
      providerFault?: boolean
    }

export type ModelCall = {
  model: LanguageModel
  modelName: string
  provider: ProviderSettings
  tuning: LaneTuning
  task: LaneTask
  limits: CallLimits
}

export type CallModel = (call: ModelCall) => Promise<CallOutcome>

export type CallLimits = { attemptTimeoutMs: number; stallTimeoutMs: number }

const MAX_OUTPUT_CHARACTERS = 60_000
const MAX_RETRY_AFTER_SECONDS = 30

/** The SDK is loaded on first use, so that a service with offline lanes does not pay for it. */
export async function openModel(
  provider: ProviderSettings,
  model: string,
  { structuredOutputs = false } = {},
): Promise<LanguageModel> {
  if (provider.kind === 'anthropic') {
    const { createAnthropic } = await import('@ai-sdk/anthropic')
    // Without a key the SDK would silently read one from the environment.
    return createAnthropic({ baseURL: provider.baseUrl, apiKey: provider.apiKey ?? 'none' })(model)
  }
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
  const key = provider.apiKey === undefined ? {} : { apiKey: provider.apiKey }
  return createOpenAICompatible({
    name: 'lane',
    baseURL: provider.baseUrl,
    includeUsage: true,
    supportsStructuredOutputs: structuredOutputs,
    ...key,
  })(model)
}

/** Streams one response and classifies how it ended. Never throws on a provider failure. */
export async function callModel({ model, modelName, provider, tuning, task, limits }: ModelCall): Promise<CallOutcome> {
  const attempt = new AbortController()
  const timeouts = startTimeouts(attempt, limits)
  const abortAttempt = () => attempt.abort(new Error('The run ended.'))
  task.signal.addEventListener('abort', abortAttempt, { once: true })
  let text = ''
  try {
    const { stream } = await model.doStream({
      prompt: [{ role: 'system', content: tuning.systemPrompt }, ...buildMessages(task)],
      temperature: tuning.temperature,
      maxOutputTokens: tuning.maxOutputTokens,
      abortSignal: attempt.signal,
    })
    for await (const part of stream) {
      timeouts.restartStallTimer()
      if (part.type === 'text-delta') {
        text += part.delta
        if (text.length > MAX_OUTPUT_CHARACTERS)
          return invalidOutput(`The model's output exceeded ${MAX_OUTPUT_CHARACTERS} characters.`)
        task.onText?.({
          output: text,
          provider: provider.name,
          model: modelName,
          usage: toUsage(NO_USAGE, provider, task, text),
        })
      } else if (part.type === 'error') {
        return attempt.signal.aborted ? toTimeout(task, timeouts.reason()) : toFailure(part.error)
      } else if (part.type === 'finish') {
        return toOutcome(text, part.finishReason.unified, toUsage(part.usage, provider, task, text), task)
      }
    }
    return brokenResponse('The response ended early.')
  } catch (error) {
    return attempt.signal.aborted ? toTimeout(task, timeouts.reason()) : toFailure(error)
  } finally {
    timeouts.clear()
    task.signal.removeEventListener('abort', abortAttempt)
    // However this ends, close the connection so that it does not keep streaming.
    attempt.abort()
  }
}

/** Aborts the attempt after its total time, or when no data arrives for too long. */
function startTimeouts(attempt: AbortController, limits: CallLimits) {
  let abortReason = ''
  const abortWith = (reason: string) => {
    abortReason = reason
    attempt.abort(new Error(reason))
  }
  const attemptTimer = setTimeout(() => abortWith('The model took too long.'), limits.attemptTimeoutMs)
  let stallTimer = setTimeout(() => abortWith('The model stopped responding.'), limits.stallTimeoutMs)
  return {
    restartStallTimer() {
      clearTimeout(stallTimer)
      stallTimer = setTimeout(() => abortWith('The model stopped responding.'), limits.stallTimeoutMs)
    },
    reason: () => abortReason,
    clear() {
      clearTimeout(attemptTimer)
      clearTimeout(stallTimer)
    },
  }
}

/** Memories are sent as a separate, labelled message, so that they cannot be mistaken for the task. */
function buildMessages(task: LaneTask): { role: 'user'; content: [{ type: 'text'; text: string }] }[] {
  const notes =
    task.context.length > 0 ? [`Notes from earlier in this session, oldest first:\n\n${task.context.join('\n\n')}`] : []
  return [...notes, task.task].map((text) => ({ role: 'user', content: [{ type: 'text', text }] }))
}

function toOutcome(text: string, reason: string, usage: LaneUsage, task: LaneTask): CallOutcome {
  if (reason === 'content-filter')
    return { ok: false, reason: 'refused', message: 'The model refused the task.', retryable: false }
  if (reason !== 'stop' && reason !== 'length') return invalidOutput('The response ended early.')
  if (!isStorableText(text)) return invalidOutput('The model returned characters that are not text.')
  if (!/[\p{L}\p{N}]/u.test(text)) return invalidOutput('The model returned no text.')
  const finished = reason === 'length' ? { finishedEarly: true } : {}
  if (readOutputFormat(task.task).form !== 'json') return { ok: true, text, usage, ...finished }
  const json = extractJson(text)
  return json === undefined
    ? invalidOutput('JSON was requested and the model returned something else.')
    : { ok: true, text: json, usage, ...finished }
}

/** The JSON of an answer without the code fence models often add; undefined when it does not parse. */
function extractJson(text: string): string | undefined {
  const jsonText = text
    .trim()
    .replace(/^```(?:json)?[ \t]*\n/, '')
    .replace(/\n?```$/, '')
  try {
    JSON.parse(jsonText)
    return jsonText
  } catch {
    return undefined
  }
}

const invalidOutput = (message: string): CallOutcome => ({
  ok: false,
  reason: 'invalid_output',
  message,
  retryable: true,
})

/** The provider stopped within its answer, so nothing a caller wrote has brought it about. */
const brokenResponse = (message: string): CallOutcome => ({
  ok: false,
  reason: 'invalid_output',
  message,
  retryable: true,
  providerFault: true,
})

const toTimeout = (task: LaneTask, reason: string): CallOutcome =>
  task.signal.aborted
    ? { ok: false, reason: 'timeout', message: 'The run reached its deadline.', retryable: false }
    : {
        ok: false,
        reason: 'timeout',
        message: reason || 'The attempt was stopped.',
        retryable: true,
        providerFault: true,
      }

type ProviderError = { name?: string; statusCode?: number; responseHeaders?: Record<string, string> }

function toFailure(error: unknown): CallOutcome {
  const { name, statusCode, responseHeaders } = (error ?? {}) as ProviderError
  if (statusCode === undefined || (statusCode >= 200 && statusCode < 300)) {
    // The SDK uses these for a stream that is unreadable or ended early; with other errors the provider was not reached.
    const isInvalidResponse =
      statusCode !== undefined ||
      name === 'AI_InvalidResponseDataError' ||
      name === 'AI_JSONParseError' ||
      name === 'AI_TypeValidationError' ||
      name === 'AI_NoOutputGeneratedError'
    return isInvalidResponse
      ? brokenResponse('The response ended early or could not be read.')
      : {
          ok: false,
          reason: 'unavailable',
          message: 'The model provider could not be reached.',
          retryable: true,
          providerFault: true,
        }
  }
  if (statusCode === 429 || statusCode === 408 || statusCode >= 500) {
    const retryAfterMs = parseRetryAfterMs(responseHeaders?.['retry-after'])
    return {
      ok: false,
      reason: 'unavailable',
      message: `The model provider answered ${statusCode}.`,
      retryable: true,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      providerFault: statusCode !== 429,
    }
  }
  if (statusCode === 401 || statusCode === 403 || statusCode === 404) {
    return {
      ok: false,
      reason: 'unavailable',
      message: `The model provider does not accept this service (${statusCode}).`,
      retryable: false,
    }
  }
  return {
    ok: false,
    reason: 'refused',
    message: `The model provider refused the task (${statusCode}).`,
    retryable: false,
  }
}

function parseRetryAfterMs(header: string | undefined): number | undefined {
  const seconds = Number(header)
  return header && Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds, MAX_RETRY_AFTER_SECONDS) * 1000
    : undefined
}

const NO_USAGE = { inputTokens: { total: undefined }, outputTokens: { total: undefined } }

/** When a provider reports no usage, it is estimated at four characters per token, so that the cost is never zero. */
function toUsage(
  usage: Record<'inputTokens' | 'outputTokens', { total: number | undefined }>,
  provider: ProviderSettings,
  task: LaneTask,
  text: string,
): LaneUsage {
  const inputCharacters = task.task.length + task.context.reduce((sum, note) => sum + note.length, 0)
  const inputTokens = usage.inputTokens.total ?? Math.ceil(inputCharacters / 4)
  const outputTokens = usage.outputTokens.total ?? Math.ceil(text.length / 4)
  const cost = (inputTokens * provider.usdPerMillionInput + outputTokens * provider.usdPerMillionOutput) / 1_000_000
  return { inputTokens, outputTokens, costUsd: Number(cost.toFixed(8)) }
}
