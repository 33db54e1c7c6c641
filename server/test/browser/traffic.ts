import type { TestService } from '../harness.ts'

export type PaidRun = { run_id: string; agent_id: string; receipt: { receipt_id: string } & Record<string, unknown> }

/** Paid runs, one after the other, and each receipt in its place in the log. */
export async function paidRuns(
  service: TestService,
  count: number,
  { headers = {}, body = {} }: { headers?: Record<string, string>; body?: Record<string, unknown> } = {},
): Promise<PaidRun[]> {
  const payer = await service.payer(5)
  const runs: PaidRun[] = []
  for (let nth = 1; nth <= count; nth += 1) {
    const response = await payer.fetch(`${service.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ task: `Add ${nth} and 2.`, agent_id: 'comedian-v1', ...body }),
    })
    if (response.status !== 200) throw new Error(`A run answered ${response.status}: ${await response.text()}`)
    runs.push((await response.json()) as PaidRun)
  }
  for (const { receipt } of runs) await inLog(service, receipt.receipt_id)
  return runs
}

async function inLog(service: TestService, id: string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const { body } = await service.get(`/api/receipts/${id}`)
    if (body.log) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`The receipt ${id} got no place in the log.`)
}
