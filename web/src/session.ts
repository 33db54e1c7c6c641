/**
 * The session is an HttpOnly cookie. The CSRF token stays in memory and is fetched again after a reload; local storage
 * only records that there may be a session.
 */
const SIGNED_IN_KEY = 'countersign.signed-in'

let csrfToken: string | undefined

export const readCsrfToken = () => csrfToken

export const mayBeSignedIn = () => openStorage()?.getItem(SIGNED_IN_KEY) === 'yes'

export function storeSession(token: string) {
  csrfToken = token
  openStorage()?.setItem(SIGNED_IN_KEY, 'yes')
}

export function clearSession() {
  csrfToken = undefined
  openStorage()?.removeItem(SIGNED_IN_KEY)
}

/** Called when another tab signs in or out. */
export function onSessionChangeElsewhere(onChange: () => void): () => void {
  const handleStorage = (event: StorageEvent) => {
    if (event.key === SIGNED_IN_KEY) onChange()
  }
  addEventListener('storage', handleStorage)
  return () => removeEventListener('storage', handleStorage)
}

/** Undefined when the browser denies storage; the session then lasts as long as the page. */
export function openStorage(): Storage | undefined {
  try {
    return localStorage
  } catch {
    return undefined
  }
}
