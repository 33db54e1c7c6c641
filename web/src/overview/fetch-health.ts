import { type ApiResponse, CountersignError } from '@countersign/sdk'
import { api } from '../api.ts'

type Health = ApiResponse<'/api/health', 'get'>

/** A degraded service responds 503 with its health report, which is shown like a successful one. */
export async function fetchHealth(): Promise<Health> {
  try {
    return await api.get('/api/health')
  } catch (error) {
    if (error instanceof CountersignError && error.body.status === 'degraded') return error.body as Health
    throw error
  }
}
