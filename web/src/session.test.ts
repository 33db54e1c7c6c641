import { beforeEach, expect, test, vi } from 'vitest'
import { stubStorage } from '../test/browser-stubs.ts'
import { clearSession, mayBeSignedIn, onSessionChangeElsewhere, readCsrfToken, storeSession } from './session.ts'

let storage: Map<string, string>
beforeEach(() => {
  storage = stubStorage()
  clearSession()
})

test('the CSRF token stays in memory, and storage only records that there may be a session', () => {
  storeSession('secret-token')
  expect(readCsrfToken()).toBe('secret-token')
  expect(mayBeSignedIn()).toBe(true)
  expect([...storage].join()).not.toContain('secret-token')
})

test('clearing a session removes the token and the record', () => {
  storeSession('secret-token')
  clearSession()
  expect(readCsrfToken()).toBeUndefined()
  expect(mayBeSignedIn()).toBe(false)
  expect(storage.size).toBe(0)
})

test('a browser that denies storage still keeps the session of the page', () => {
  Object.defineProperty(globalThis, 'localStorage', {
    configurable: true,
    get() {
      throw new DOMException('denied', 'SecurityError')
    },
  })
  storeSession('secret-token')
  expect(readCsrfToken()).toBe('secret-token')
  expect(mayBeSignedIn()).toBe(false)
})

test('only a change of the session in another tab is reported, until unsubscribed', () => {
  const target = new EventTarget()
  vi.stubGlobal('addEventListener', target.addEventListener.bind(target))
  vi.stubGlobal('removeEventListener', target.removeEventListener.bind(target))
  const dispatch = (key: string) => target.dispatchEvent(Object.assign(new Event('storage'), { key }))
  const onChange = vi.fn()
  const unsubscribe = onSessionChangeElsewhere(onChange)
  dispatch('countersign.log-head')
  expect(onChange).not.toHaveBeenCalled()
  dispatch('countersign.signed-in')
  expect(onChange).toHaveBeenCalledTimes(1)
  unsubscribe()
  dispatch('countersign.signed-in')
  expect(onChange).toHaveBeenCalledTimes(1)
})
