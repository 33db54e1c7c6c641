import type { TestService } from '../../../server/test/harness.ts'

export type PaidRun = { run_id: string; agent_id: string; receipt: { receipt_id: string } & Record<string, unknown> }

/** Creates paid runs one after the other and waits until each receipt is in the log. */
export async function createPaidRuns(
  service: TestService,
  count: number,
  { headers = {}, body = {} }: { headers?: Record<string, string>; body?: Record<string, unknown> } = {},
): Promise<PaidRun[]> {
  const payer = await service.payer(5)
  const runs: PaidRun[] = []
  for (let number = 1; number <= count; number += 1) {
    const response = await payer.fetch(`${service.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ task: `Add ${number} and 2.`, agent_id: 'comedian-v1', ...body }),
    })
    if (response.status !== 200) throw new Error(`A run returned ${response.status}: ${await response.text()}`)
    runs.push((await response.json()) as PaidRun)
  }
  for (const { receipt } of runs) await waitForLogEntry(service, receipt.receipt_id)
  return runs
}

async function waitForLogEntry(service: TestService, id: string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const { body } = await service.get(`/api/receipts/${id}`)
    if (body.log) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`The receipt ${id} was not added to the log.`)
}
