import { serveThread } from '../../platform/thread-pool.ts'
import { findSyntaxFaults } from './syntax-faults.ts'

serveThread(findSyntaxFaults)
