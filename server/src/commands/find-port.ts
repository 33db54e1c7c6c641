import { type AddressInfo, createServer } from 'node:net'
import { type Config, ConfigError } from '../platform/config.ts'

/** The port to listen on, or a free one for 0. Throws when it is in use. */
export async function findPort(config: Pick<Config, 'HOST' | 'PORT'>): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(describeTakenPort(error, config)))
    server.listen({ host: config.HOST, port: config.PORT, exclusive: true }, resolve)
  })
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Says what to do about a port in use; other errors stay as they are. */
export function describeTakenPort(error: unknown, { HOST, PORT }: Pick<Config, 'HOST' | 'PORT'>): unknown {
  if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') return error
  return new ConfigError(
    `Port ${PORT} of ${HOST} is in use: stop what listens there, or set PORT to another one, such as PORT=${PORT === 65535 ? 4020 : PORT + 1} (EADDRINUSE).`,
  )
}
