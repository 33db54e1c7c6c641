import { vi } from 'vitest'

type StoredResponse = { status?: number; body: unknown }
export type SentRequest = { method: string; url: string; headers: Record<string, string>; body: unknown }

/** Replaces `fetch`: responds by `METHOD url` and records what was sent. An unknown request fails like a network error. */
export function stubFetch(responses: Record<string, StoredResponse>): SentRequest[] {
  const sentRequests: SentRequest[] = []
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    const method = init.method ?? 'GET'
    const body = init.body === undefined ? undefined : JSON.parse(String(init.body))
    sentRequests.push({ method, url, headers: init.headers as Record<string, string>, body })
    const response = responses[`${method} ${url}`]
    if (!response) throw new TypeError('fetch failed')
    return Response.json(response.body, { status: response.status ?? 200 })
  })
  return sentRequests
}

/** Replaces `localStorage` with one that starts empty. */
export function stubStorage(): Map<string, string> {
  const items = new Map<string, string>()
  vi.stubGlobal('localStorage', {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  })
  return items
}
