/**
 * The session itself is a cookie that no script can read. The token for writes stays in memory and is asked for again
 * when the page is loaded anew; what is stored is only that there is a session to ask about.
 */
const HINT = 'countersign.signed-in'

let csrfToken: string | undefined

export const readCsrfToken = () => csrfToken

export const maybeSignedIn = () => stored()?.getItem(HINT) === 'yes'

export function keepSession(token: string) {
  csrfToken = token
  stored()?.setItem(HINT, 'yes')
}

export function dropSession() {
  csrfToken = undefined
  stored()?.removeItem(HINT)
}

/** Another page of ours signed in or out. */
export function onSessionElsewhere(changed: () => void): () => void {
  const heard = (event: StorageEvent) => {
    if (event.key === HINT) changed()
  }
  addEventListener('storage', heard)
  return () => removeEventListener('storage', heard)
}

/** A browser may refuse storage altogether; then a session lasts as long as the page. */
export function stored(): Storage | undefined {
  try {
    return localStorage
  } catch {
    return undefined
  }
}
