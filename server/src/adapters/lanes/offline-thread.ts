import { serveThread } from '../../platform/thread-pool.ts'
import { runOfflineTask } from './offline-task.ts'

serveThread(runOfflineTask)
