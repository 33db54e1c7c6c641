import type { TokenExchange } from '../../modules/brokerage/rh-auth.ts'

/** The token endpoint of RFC 6749, section 4.1.3; with PKCE (RFC 7636) when there is a verifier. */
const TIMEOUT_MS = 10_000
const MAX_BYTES = 65_536

export function createTokenExchange(tokenUrl: string, timeoutMs = TIMEOUT_MS): TokenExchange {
  return async ({ code, redirectUri, clientId, clientSecret, codeVerifier }) => {
    const form = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      client_id: clientId,
      client_secret: clientSecret,
      ...(codeVerifier !== null && { code_verifier: codeVerifier }),
    })
    try {
      const response = await fetch(tokenUrl, {
        method: 'POST',
        headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
        body: form.toString(),
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      })
      const text = await response.text()
      if (response.status >= 400 && response.status < 500) return { ok: false, reason: 'refused' }
      if (!response.ok || text.length > MAX_BYTES) return { ok: false, reason: 'unreachable' }
      const tokens = JSON.parse(text) as Record<string, unknown>
      return typeof tokens?.access_token === 'string' ? { ok: true, tokens } : { ok: false, reason: 'refused' }
    } catch {
      return { ok: false, reason: 'unreachable' }
    }
  }
}
