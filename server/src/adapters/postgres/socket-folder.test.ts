import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { removeAbandonedSocketFolders, socketFile } from './socket-folder.ts'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean()
})

test('socket folders of servers that are gone are removed, and nothing else is', async () => {
  const base = mkdtempSync(join(tmpdir(), 'cs-'))
  cleanups.push(() => rmSync(base, { recursive: true, force: true }))
  const anHourAgo = new Date(Date.now() - 3_600_000)
  const makeFolder = (name: string, mode = 0o700) => {
    const folder = join(base, name)
    mkdirSync(folder, { mode })
    return folder
  }
  const age = (folder: string) => utimesSync(folder, anHourAgo, anHourAgo)
  const listen = (path: string) =>
    new Promise<Server>((listening) => {
      const server = createServer().listen(path, () => listening(server))
      cleanups.push(() => server.close())
    })

  const empty = makeFolder('countersign-0123456789ab')
  const dead = makeFolder('countersign-1123456789ab-1')
  writeFileSync(socketFile(dead), '')
  const live = makeFolder('countersign-2123456789ab')
  await listen(socketFile(live))
  const fresh = makeFolder('countersign-3123456789ab')
  const open = makeFolder('countersign-4123456789ab', 0o755)
  const other = makeFolder('countersign-data-x')
  for (const folder of [empty, dead, live, open, other]) age(folder)

  await removeAbandonedSocketFolders(undefined, [base])
  const folders = { empty, dead, live, fresh, open, other }
  expect(Object.fromEntries(Object.entries(folders).map(([name, folder]) => [name, existsSync(folder)]))).toEqual({
    empty: false,
    dead: false,
    live: true,
    fresh: true,
    open: true,
    other: true,
  })
})
