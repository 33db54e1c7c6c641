import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { type Database, openDatabase } from '../../src/platform/db.ts'
import { migrate } from '../../src/platform/migrate.ts'

const host = process.env.COUNTERSIGN_TEST_PG!
export const silent = pino({ level: 'silent' })
const connection = (database: string) => ({ host, port: 5432, user: 'countersign', database })

export async function createTestDatabase(): Promise<{ database: Database; name: string; drop(): Promise<void> }> {
  const name = `receipts_${randomBytes(4).toString('hex')}`
  const admin = openDatabase(connection('countersign'), { max: 1, log: silent })
  await admin.pool.query(`create database ${name}`)
  const database = openDatabase(connection(name), { max: 5, log: silent })
  await migrate(database)
  return {
    database,
    name,
    async drop() {
      await database.close()
      await admin.pool.query(`drop database ${name} with (force)`)
      await admin.close()
    },
  }
}

export const openNamed = (name: string) => openDatabase(connection(name), { max: 3, log: silent })
