import { getPriority, setPriority } from 'node:os'
import { workerData } from 'node:worker_threads'

/** Lower than the event loops, which answer everybody: threads use what they leave of the processors. */
const THREAD_PRIORITY = 10

// Linux lowers the calling thread alone; elsewhere it would be the whole process. Before the module, since loading it is work.
if (process.platform === 'linux') setPriority(Math.max(getPriority(), THREAD_PRIORITY))
await import(workerData.module)
