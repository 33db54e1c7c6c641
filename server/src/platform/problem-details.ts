import { STATUS_CODES } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { asObject } from './x402-wire.ts'

/** Errors as RFC 9457 problem details, for a caller that names the media type; everybody else gets the usual error body. */
const PROBLEM_TYPE = 'application/problem+json'

/** The payload of an error response: as it is, or as problem details. */
export function toProblemDetails(request: FastifyRequest, reply: FastifyReply, payload: unknown): unknown {
  if (!acceptsProblemDetails(request.headers.accept) || typeof payload !== 'string') return payload
  if (!String(reply.getHeader('content-type')).startsWith('application/json')) return payload
  const body = asObject(JSON.parse(payload))
  if (!body) return payload
  const { status: runStatus, ...members } = body
  const code = [body.code, body.error].find((value) => typeof value === 'string' && value !== 'error')
  reply.header('content-type', PROBLEM_TYPE)
  reply.header('vary', [reply.getHeader('vary') ?? [], 'accept'].flat().join(', '))
  return JSON.stringify({
    type: code === undefined ? 'about:blank' : `urn:problem-type:countersign:${code}`,
    title: code === undefined ? STATUS_CODES[reply.statusCode] : toTitle(String(code)),
    status: reply.statusCode,
    ...(typeof body.message === 'string' && { detail: body.message }),
    ...members,
    ...(runStatus !== undefined && { run_status: runStatus }),
  })
}

const acceptsProblemDetails = (accept = ''): boolean =>
  accept
    .toLowerCase()
    .split(',')
    .some((part) => {
      const [type, ...parameters] = part.split(';').map((text) => text.trim())
      return type === PROBLEM_TYPE && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
    })

const toTitle = (code: string) => code.charAt(0).toUpperCase() + code.slice(1).replaceAll('_', ' ')
