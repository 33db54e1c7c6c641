import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { installPackages } from '../../../server/test/install-packages.ts'

export type Axe = Awaited<ReturnType<typeof installAxe>>

/** axe-core, installed for the test only. */
export async function installAxe() {
  const { folder, remove } = await installPackages(['axe-core@4.14.0'])
  const script = readFileSync(join(folder, 'node_modules/axe-core/axe.min.js'), 'utf8')

  /** WCAG 2.2 A and AA, and what axe calls best practice, in the whole page or in one part of it. */
  const findIssues = async (page: Page, selector = 'html'): Promise<string[]> => {
    if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(script)
    return page.evaluate(async (part) => {
      type Result = { violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[] }
      const { axe: tool } = globalThis as unknown as { axe: { run(node: Element, options: object): Promise<Result> } }
      const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
      const options = { runOnly: { type: 'tag', values: tags } }
      const { violations } = await tool.run(document.querySelector(part)!, options)
      return violations.map(({ id, nodes }) => `${id}: ${nodes[0]!.target} ${nodes[0]!.failureSummary}`)
    }, selector)
  }
  return { findIssues, remove }
}
