/** Runs a sequencer on the database in its first argument until it is killed. */
import { openDatabase } from '../../src/platform/db.ts'
import { createSequencer } from '../../src/platform/sequencer.ts'
import { createReceiptsFixture, silent } from './helpers.ts'

const database = openDatabase(process.argv[2]!, { max: 3, log: silent })
const { tasks, ids } = createReceiptsFixture(database)
const sequencer = createSequencer({
  db: database.db,
  log: silent,
  instance: ids.uuid(),
  tasks,
  leaseMs: 150,
  idleMs: 1,
})
sequencer.start()
setInterval(() => {
  if (sequencer.isLeader()) process.stdout.write('leads\n')
}, 20)
