/** What the supervisor needs of a logger; pino's fits. */
export type Log = {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}
