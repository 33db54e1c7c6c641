import { useEffect, useRef, useState } from 'react'
import type { Quote } from './quote-view.tsx'

/** `polling` while the stream is not there: the page then asks again by itself. */
export type StreamState = 'connecting' | 'live' | 'polling'

export type StreamQuote = Quote & { window_score: number; window_status: string }

const REOPEN_MS = 10_000

/** Follows the readings of one wrapper, or of all, as the service sends them. */
export function useQuoteStream(symbol: string | undefined, onQuote: (quote: StreamQuote) => void): StreamState {
  const [state, setState] = useState<StreamState>('connecting')
  const handler = useRef(onQuote)
  useEffect(() => {
    handler.current = onQuote
  })
  useEffect(() => {
    let source: EventSource
    let timer: ReturnType<typeof setTimeout> | undefined
    const open = () => {
      source = new EventSource(`/api/basis/v1/stream${symbol ? `?symbols=${encodeURIComponent(symbol)}` : ''}`)
      source.onopen = () => setState('live')
      source.onerror = () => {
        setState('polling')
        // The browser reconnects by itself, but not after an answer that is no stream.
        if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, REOPEN_MS)
      }
      source.addEventListener('quote', (event) => handler.current(JSON.parse(event.data) as StreamQuote))
    }
    setState('connecting')
    open()
    return () => {
      source.close()
      clearTimeout(timer)
    }
  }, [symbol])
  return state
}
