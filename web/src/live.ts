import { useEffect, useSyncExternalStore } from 'react'
import { ACCOUNT_KEY, queryClient, setLive } from './api.ts'

/** Whether changes reach this page as they happen; `since` says from when on they do not. */
export type LiveState = { status: 'connecting' | 'live' | 'reconnecting' | 'offline'; since: string | null }

const STREAM = '/api/control-tower/stream'
/** The service says something every ten seconds. */
const SILENCE_MS = 25_000
const FIRST_RETRY_MS = 500
const LONGEST_RETRY_MS = 15_000
/** A page that nobody looks at gives its connection back: a browser has six for a service. */
const HIDDEN_MS = 60_000

let state: LiveState = { status: 'connecting', since: null }
const listeners = new Set<() => void>()

function setState(status: LiveState['status']) {
  const since = status === 'live' || status === 'connecting' ? null : (state.since ?? new Date().toISOString())
  if (state.status === status && state.since === since) return
  state = { status, since }
  setLive(status === 'live')
  for (const listener of listeners) listener()
}

export const useLiveState = () =>
  useSyncExternalStore(
    (onChange) => {
      listeners.add(onChange)
      return () => listeners.delete(onChange)
    },
    () => state,
    () => state,
  )

/** How long to wait before the next attempt: longer each time, and not the same for all pages. */
export const retryDelay = (attempt: number, random: number) =>
  Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** attempt) * (0.75 + random / 2)

/** A list of which several pages were read is left alone: reading all of them again would move it under the reader. */
const isLongList = (data: unknown) => {
  const { pages } = (data ?? {}) as { pages?: unknown[] }
  return Array.isArray(pages) && pages.length > 1
}

const refresh = (...topic: string[]) =>
  void queryClient.invalidateQueries({
    queryKey: [ACCOUNT_KEY, ...topic],
    predicate: (query) => !isLongList(query.state.data),
  })

/** One stream for the page of a signed-in tenant; returns how to end it. */
export function followChanges(): () => void {
  let source: EventSource | undefined
  let retryTimer: ReturnType<typeof setTimeout> | undefined
  let silenceTimer: ReturnType<typeof setTimeout> | undefined
  let hiddenTimer: ReturnType<typeof setTimeout> | undefined
  let attempts = 0

  const disconnect = () => {
    source?.close()
    source = undefined
    clearTimeout(retryTimer)
    clearTimeout(silenceTimer)
  }
  const reconnectLater = () => {
    disconnect()
    setState(navigator.onLine ? 'reconnecting' : 'offline')
    retryTimer = setTimeout(connect, retryDelay(attempts, Math.random()))
    attempts += 1
  }
  const noteSound = () => {
    clearTimeout(silenceTimer)
    silenceTimer = setTimeout(reconnectLater, SILENCE_MS)
  }
  const connect = () => {
    disconnect()
    source = new EventSource(STREAM)
    noteSound()
    source.addEventListener('ready', () => {
      attempts = 0
      noteSound()
      setState('live')
      // What changed before this moment was not announced.
      refresh()
    })
    source.addEventListener('pulse', noteSound)
    source.addEventListener('change', ({ data }: MessageEvent<string>) => {
      noteSound()
      for (const topic of (JSON.parse(data) as { topics: string[] }).topics) refresh(topic)
    })
    source.addEventListener('error', reconnectLater)
  }
  const connectNow = () => {
    attempts = 0
    connect()
  }
  const handleOffline = () => {
    disconnect()
    setState('offline')
  }
  const handleVisibility = () => {
    clearTimeout(hiddenTimer)
    if (document.hidden) hiddenTimer = setTimeout(disconnect, HIDDEN_MS)
    else if (!source) connectNow()
  }

  state = { status: 'connecting', since: null }
  connect()
  addEventListener('online', connectNow)
  addEventListener('offline', handleOffline)
  document.addEventListener('visibilitychange', handleVisibility)
  return () => {
    disconnect()
    clearTimeout(hiddenTimer)
    removeEventListener('online', connectNow)
    removeEventListener('offline', handleOffline)
    document.removeEventListener('visibilitychange', handleVisibility)
    setState('connecting')
  }
}

export const useLiveUpdates = () => useEffect(followChanges, [])
