import type { FastifyReply } from 'fastify'
import { isUnavailable } from '../../../platform/db.ts'
import type { App } from '../../../platform/http-app.ts'
import type { Log } from '../../../platform/log.ts'
import { invalid, Problem, unavailable } from '../../../platform/problem.ts'
import { isStorableText } from '../../../platform/storable-text.ts'
import { type ApprovalLinks, describeRefusal, type LinkDecision, type LinkPage } from './approval-links.ts'
import { MAX_REASON, pageHeaders, renderDecision, renderEnded, renderProblem } from './approval-page.ts'

const BODY_LIMIT = 16 * 1024
const FORM = 'application/x-www-form-urlencoded'

type Params = { token: string }

/** The page behind the link of a message, for people without an account. It is no part of the API, and answers in HTML only. */
export function approvalPageRoutes(app: App, links: ApprovalLinks, log: Pick<Log, 'error'>) {
  app.register(async (pages) => {
    pages.removeAllContentTypeParsers()
    pages.addContentTypeParser(FORM, { parseAs: 'buffer', bodyLimit: BODY_LIMIT }, (_request, body, done) =>
      done(null, body),
    )
    pages.setErrorHandler((error, request, reply) => {
      const problem = toProblem(error)
      const { status, heading, message } = describeRefusal(problem)
      if (status >= 500)
        log.error({ request_id: request.id, err: problem.options.cause ?? error }, 'an approval page failed')
      if (problem.options.retryAfterSeconds !== undefined)
        reply.header('retry-after', problem.options.retryAfterSeconds)
      return reply.code(status).headers(pageHeaders).send(renderProblem(heading, message))
    })
    pages.get<{ Params: Params }>('/approve/:token', async (request, reply) =>
      sendPage(reply, await links.show(request.params.token)),
    )
    pages.post<{ Params: Params }>('/approve/:token', async (request, reply) =>
      sendPage(reply, await links.decide(request.params.token, readForm(request.body as Buffer | undefined))),
    )
  })
}

const sendPage = (reply: FastifyReply, page: LinkPage) =>
  reply
    .code(page.status)
    .headers(pageHeaders)
    .send(page.kind === 'open' ? renderDecision(page.view) : renderEnded(page.view))

const utf8 = new TextDecoder('utf-8', { fatal: true })

function readForm(body: Buffer | undefined): LinkDecision {
  const form = new URLSearchParams(decode(body))
  const decisions = form.getAll('decision')
  const [decision] = decisions
  if (decisions.length !== 1 || (decision !== 'approve' && decision !== 'reject'))
    throw invalid('decision must be one of approve, reject.')
  // A browser sends the line breaks of a text area as CRLF.
  const reason = (form.get('reason') ?? '').replaceAll('\r\n', '\n').trim()
  if (reason.length > MAX_REASON || !isStorableText(reason))
    throw invalid(`reason must have at most ${MAX_REASON} characters.`)
  return { decision, ...(reason !== '' && { reason }) }
}

function decode(body: Buffer | undefined): string {
  try {
    return utf8.decode(body ?? Buffer.alloc(0))
  } catch {
    throw invalid('The form is not valid UTF-8.')
  }
}

function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (isUnavailable(error)) return unavailable('The database cannot be reached at the moment.', 2, error)
  const { statusCode } = error as { statusCode?: number }
  if (statusCode !== undefined && statusCode < 500)
    return new Problem('invalid_request', 'The request is not valid.', { status: statusCode })
  return new Problem('error', 'An internal error occurred.', { status: 500, cause: error })
}
