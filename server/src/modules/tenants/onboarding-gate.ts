import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { limitedAddress, networkPrefix } from '../../platform/client-network.ts'
import { forbidden } from '../../platform/problem.ts'
import { HOUR_MS } from '../../platform/rate-limit.ts'

/** A network of addresses may make this many times the tenants of one address. */
const NETWORK_FACTOR = 4

export type OnboardingRules = {
  /** Tenants that one address may make in an hour; 0 is no limit. */
  perHour: number
  /** The code that onboarding takes; undefined when anybody may onboard. */
  invitation: string | undefined
  /** Path of the faucet of a development chain. */
  faucet?: string
}

export const openOnboarding: OnboardingRules = { perHour: 0, invitation: undefined }

/** Decides whether a caller may make a tenant, before anything is written. A wrong invitation counts as well, so that it cannot be guessed. */
export async function admitOnboarding(
  { perHour, invitation }: OnboardingRules,
  request: Pick<FastifyRequest, 'ip' | 'limitAs'>,
  body: { invitation?: string },
): Promise<void> {
  await request.limitAs(`onboard:${limitedAddress(request.ip)}`, perHour, HOUR_MS)
  await request.limitAs(`onboard-network:${networkPrefix(request.ip)}`, perHour * NETWORK_FACTOR, HOUR_MS)
  if (invitation === undefined) return
  if (!timingSafeEqual(digest(body.invitation ?? ''), digest(invitation)))
    throw forbidden('Onboarding takes the invitation of the operator, in the field invitation.')
}

const digest = (text: string) => createHash('sha256').update(text).digest()
