import type pg from 'pg'
import { ConfigError } from './config.ts'

/** The oldest PostgreSQL on which the tests run (`npm run test:soak -- failover`). */
export const LEAST_SERVER_VERSION = 15

/** An older server may lack what a migration or a statement needs, and would say so in the middle of the work. */
export async function requireServerVersion(client: Pick<pg.Client, 'query'>): Promise<void> {
  const { rows } = await client.query<{ number: number; name: string }>(
    `select current_setting('server_version_num')::int as number, current_setting('server_version') as name`,
  )
  const { number, name } = rows[0]!
  if (number < LEAST_SERVER_VERSION * 10_000)
    throw new ConfigError(
      `DATABASE_URL leads to PostgreSQL ${name}. Countersign needs PostgreSQL ${LEAST_SERVER_VERSION} or newer; nothing was changed.`,
    )
}
