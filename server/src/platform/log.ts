import { type DestinationStream, type Logger, pino } from 'pino'
import { formatLogLine } from './terminal-log.ts'

export type Log = Logger

/** Fields that may contain a secret are redacted; bodies are never logged. */
const redactedPaths = [
  'req.headers["x-api-key"]',
  'req.headers["x-admin-key"]',
  'req.headers.authorization',
  'req.headers.cookie',
  'req.headers["payment-signature"]',
  'req.headers["x-payment"]',
  '*.api_key',
  '*.apiKey',
  '*.signingSecret',
  '*.password',
  '*.privateKey',
]

const terminal: DestinationStream = {
  write: (line) => void process.stderr.write(formatLogLine(line, { colour: !process.env.NO_COLOR })),
}

export const createLog = (level: string, destination?: DestinationStream): Log =>
  pino(
    { level, redact: { paths: redactedPaths, censor: '[redacted]' }, base: undefined },
    destination ?? (process.stderr.isTTY ? terminal : pino.destination(2)),
  )
