import type { LanguageModel } from 'ai'
import type { LaneTask, LaneUsage } from '../../modules/runs/lane.ts'
import { readWish } from './offline/brief.ts'
import type { LaneTuning, ProviderSettings } from './settings.ts'

/** One attempt at one provider: text and usage, or why there is none. */
export type CallOutcome =
  | { ok: true; text: string; usage: LaneUsage }
  | {
      ok: false
      reason: 'timeout' | 'refused' | 'unavailable' | 'invalid_output'
      /** For the caller, in our own words: what a provider says may hold a secret. */
      message: string
      /** Trying the same provider again may help. */
      retryable: boolean
      retryAfterMs?: number
    }

export type CallLimits = { attemptTimeoutMs: number; stallTimeoutMs: number }

const MAX_OUTPUT = 60_000
const MAX_RETRY_AFTER_SECONDS = 30

/** The SDK and its providers are loaded on first use: a service with offline lanes never pays for them. */
export async function openModel(provider: ProviderSettings, model: string): Promise<LanguageModel> {
  if (provider.kind === 'anthropic') {
    const { createAnthropic } = await import('@ai-sdk/anthropic')
    // Without a key of ours the SDK would look for one in the environment by itself; that must not happen silently.
    return createAnthropic({ baseURL: provider.baseUrl, apiKey: provider.apiKey ?? 'none' })(model)
  }
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
  const key = provider.apiKey === undefined ? {} : { apiKey: provider.apiKey }
  return createOpenAICompatible({ name: 'lane', baseURL: provider.baseUrl, includeUsage: true, ...key })(model)
}

/** Streams one answer and judges how it ended. Never throws for what the provider does. */
export async function callModel(
  model: LanguageModel,
  provider: ProviderSettings,
  tuning: LaneTuning,
  task: LaneTask,
  limits: CallLimits,
): Promise<CallOutcome> {
  const { streamText } = await import('ai')
  const attempt = new AbortController()
  const watch = startWatch(attempt, limits)
  const stop = () => attempt.abort(new Error('The run ended.'))
  task.signal.addEventListener('abort', stop, { once: true })
  let text = ''
  try {
    const answer = streamText({
      model,
      instructions: tuning.systemPrompt,
      messages: messagesFor(task),
      temperature: tuning.temperature,
      maxOutputTokens: tuning.maxOutputTokens,
      maxRetries: 0,
      abortSignal: attempt.signal,
      onError: () => {},
    })
    for await (const part of answer.fullStream) {
      watch.heard()
      if (part.type === 'text-delta') {
        text += part.text
        if (text.length > MAX_OUTPUT) return bad('The model did not stop talking.')
      } else if (part.type === 'error') {
        return failureOf(part.error)
      } else if (part.type === 'abort') {
        return stopped(task, watch.why())
      } else if (part.type === 'finish') {
        return finished(text, part.finishReason, usageOf(part.totalUsage, provider, task, text), task)
      }
    }
    return bad('The answer broke off.')
  } catch (error) {
    return attempt.signal.aborted ? stopped(task, watch.why()) : failureOf(error)
  } finally {
    watch.end()
    task.signal.removeEventListener('abort', stop)
    // Whatever way this ends, the connection must not go on streaming to nobody.
    attempt.abort()
  }
}

/** Ends the attempt after its whole time, or after too long a silence. */
function startWatch(attempt: AbortController, limits: CallLimits) {
  let why = ''
  const give = (reason: string) => {
    why = reason
    attempt.abort(new Error(reason))
  }
  const whole = setTimeout(() => give('The model took too long.'), limits.attemptTimeoutMs)
  let silence = setTimeout(() => give('The model fell silent.'), limits.stallTimeoutMs)
  return {
    heard() {
      clearTimeout(silence)
      silence = setTimeout(() => give('The model fell silent.'), limits.stallTimeoutMs)
    },
    why: () => why,
    end() {
      clearTimeout(whole)
      clearTimeout(silence)
    },
  }
}

/** Memory stands in a message of its own, named as what it is, so that it cannot pass for the task. */
function messagesFor(task: LaneTask): { role: 'user'; content: string }[] {
  const memory =
    task.context.length > 0
      ? [
          {
            role: 'user' as const,
            content: `Notes from earlier in this session, oldest first:\n\n${task.context.join('\n\n')}`,
          },
        ]
      : []
  return [...memory, { role: 'user', content: task.task }]
}

function finished(text: string, reason: string, usage: LaneUsage, task: LaneTask): CallOutcome {
  if (reason === 'content-filter')
    return { ok: false, reason: 'refused', message: 'The model refused the task.', retryable: false }
  if (reason !== 'stop' && reason !== 'length') return bad('The answer broke off.')
  if (!/[\p{L}\p{N}]/u.test(text)) return bad('The model answered nothing.')
  if (readWish(task.task).form !== 'json') return { ok: true, text, usage }
  const json = bareJson(text)
  return json === undefined
    ? bad('JSON was asked for and the model answered something else.')
    : { ok: true, text: json, usage }
}

/** The JSON of an answer, out of the fence models like to put around it; undefined when it does not parse. */
function bareJson(text: string): string | undefined {
  const bare = text
    .trim()
    .replace(/^```(?:json)?[ \t]*\n/, '')
    .replace(/\n?```$/, '')
  try {
    JSON.parse(bare)
    return bare
  } catch {
    return undefined
  }
}

const bad = (message: string): CallOutcome => ({ ok: false, reason: 'invalid_output', message, retryable: true })

const stopped = (task: LaneTask, why: string): CallOutcome =>
  task.signal.aborted
    ? { ok: false, reason: 'timeout', message: 'The run reached its deadline.', retryable: false }
    : { ok: false, reason: 'timeout', message: why || 'The attempt was stopped.', retryable: true }

type ProviderFault = { name?: string; statusCode?: number; responseHeaders?: Record<string, string> }

function failureOf(error: unknown): CallOutcome {
  const { name, statusCode, responseHeaders } = (error ?? {}) as ProviderFault
  if (statusCode === undefined || (statusCode >= 200 && statusCode < 300)) {
    // The SDK reports a stream it cannot read, or that ended early, by these; the rest never reached the provider.
    const broken =
      statusCode !== undefined ||
      name === 'AI_InvalidResponseDataError' ||
      name === 'AI_JSONParseError' ||
      name === 'AI_TypeValidationError' ||
      name === 'AI_NoOutputGeneratedError'
    return broken
      ? bad('The answer broke off or could not be read.')
      : { ok: false, reason: 'unavailable', message: 'The model provider could not be reached.', retryable: true }
  }
  if (statusCode === 429 || statusCode === 408 || statusCode >= 500) {
    const wait = retryAfter(responseHeaders?.['retry-after'])
    return {
      ok: false,
      reason: 'unavailable',
      message: `The model provider answered ${statusCode}.`,
      retryable: true,
      ...(wait === undefined ? {} : { retryAfterMs: wait }),
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

function retryAfter(header: string | undefined): number | undefined {
  const seconds = Number(header)
  return header && Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds, MAX_RETRY_AFTER_SECONDS) * 1000
    : undefined
}

/** A provider that does not count tokens is counted for: four characters a token, so that the cost is never nothing. */
function usageOf(
  usage: { inputTokens: number | undefined; outputTokens: number | undefined },
  provider: ProviderSettings,
  task: LaneTask,
  text: string,
): LaneUsage {
  const asked = task.task.length + task.context.reduce((sum, note) => sum + note.length, 0)
  const inputTokens = usage.inputTokens ?? Math.ceil(asked / 4)
  const outputTokens = usage.outputTokens ?? Math.ceil(text.length / 4)
  const cost = (inputTokens * provider.usdPerMillionInput + outputTokens * provider.usdPerMillionOutput) / 1_000_000
  return { inputTokens, outputTokens, costUsd: Number(cost.toFixed(8)) }
}
