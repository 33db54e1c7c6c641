import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { LaneTask } from '../../modules/runs/lane.ts'
import { createOfflineLane } from './offline.ts'

const lane = createOfflineLane()

const task = (agentId: string, text: string, context: string[] = []): LaneTask => ({
  runId: 'run_test',
  agentId,
  task: text,
  context,
  deadline: new Date('2026-11-16T15:02:00Z'),
  signal: new AbortController().signal,
})

async function runLane(agentId: string, text: string, context: string[] = []): Promise<string> {
  const result = await lane.execute(task(agentId, text, context))
  if (!result.ok) throw new Error(result.message)
  return result.output
}

const AGENTS = [
  'analyst-v1',
  'coder-v1',
  'comedian-v1',
  'researcher-v2',
  'strategist-v1',
  'support-v1',
  'writer-v1',
  'default',
]

test('the analyst measures labelled numbers and names the outlier', async () => {
  const output = await runLane('analyst-v1', 'Analyse revenue: Jan 120, Feb 131, Mar 128, Apr 140, May 390, Jun 150')
  expect(output).toContain('mean 176.5, median 135.5')
  expect(output).toContain('Outliers: 390 (May). Without them the mean is 133.8.')
})

test('the analyst reads CSV, groups by category and finds correlation', async () => {
  const output = await runLane(
    'analyst-v1',
    'Which region?\n\nregion,sales,cost\nnorth,100,50\nsouth,80,45\nnorth,120,55\nsouth,70,44',
  )
  expect(output).toContain('| north | 2 | 220 | 110 | 59.5 % |')
  expect(output).toMatch(/sales and cost: r = 0\.\d+ \(strong\)/)
})

test('the analyst reports changes instead of a trend for rows without an order in time', async () => {
  const output = await runLane(
    'analyst-v1',
    'region,q1,q2\nnorth,200,240\nsouth,180,150\nwest,90,135\nWhich region drove the growth?',
  )
  expect(output).toContain('the total moved by +55: west +45, 50 %; north +40, 20 %; south -30, -16.7 %.')
  expect(output).not.toMatch(/(?:rising|falling) trend|column 2/)
})

test('the analyst tells a trend from scatter, reads named series and computes requested percentiles', async () => {
  expect(await runLane('analyst-v1', 'Signups: 112, 118, 97, 140, 155, 149, 162. Real or noise?')).toContain(
    'more than chance at 95 % confidence',
  )
  const output = await runLane('analyst-v1', 'p95 of 12 15 11 240 13 16 14 12 900 13')
  expect(output).toContain('No trend stands out from the scatter.')
  expect(output).toContain('p95 is 603.')
  expect(await runLane('analyst-v1', 'Correlate: spend 10,20,30,40; revenue 14,22,35,41')).toContain(
    'spend and revenue: r = 0.9908 (strong)',
  )
})

test('an empty cell does not shift other values to another row', async () => {
  const output = await runLane(
    'analyst-v1',
    'date,temp,sales\n2024-01-01,3,30\n2024-01-02,5,\n2024-01-03,,70\n2024-01-04,9,90\n2024-01-05,11,110\n2024-01-06,60,600',
  )
  expect(output).toContain('Outliers: 60 (2024-01-06)')
  expect(output).toContain('temp and sales: r = 1 (strong)')
})

test('the analyst does not treat unrelated figures as a series', async () => {
  const output = await runLane(
    'analyst-v1',
    'Churn went from 3.1% to 4.4% after the price change. Is that significant with 2,300 customers?',
  )
  expect(output).toContain('3.1% → 4.4%: +1.3 percentage points, 41.9 %')
  expect(output).toContain('2.32 standard errors')
  expect(output).not.toContain('## Statistics')
})

test('the analyst reports missing numbers instead of inventing some', async () => {
  expect(await runLane('analyst-v1', 'Analyse the mood of our team')).toContain('no numbers, table or JSON')
})

test('every lane returns JSON when JSON is requested', async () => {
  for (const agentId of AGENTS) {
    const output = await runLane(
      agentId,
      'Return JSON only about cats and dogs: 3, 4, 5, 60. Cats sleep a lot. Dogs bark at night.',
    )
    expect(JSON.parse(output)).toHaveProperty('summary')
  }
})

test('a word limit is kept', async () => {
  const output = await runLane(
    'researcher-v2',
    'Summarise in under 40 words:\n\nThe bridge opened in 1932. It carries 160,000 cars a day. Repairs may cost 90 million dollars. The council has not decided.',
  )
  expect(output.split(/\s+/).length).toBeLessThanOrEqual(40)
})

test('the researcher quotes the material verbatim', async () => {
  const material =
    'Caffeine blocks adenosine. A 2013 study found that caffeine six hours before bed cost 41 minutes of sleep. Some people metabolise it slowly. The effect may depend on genes.'
  const output = await runLane('researcher-v2', `What does the text say about sleep?\n\n${material}`)
  const quotes = [...output.matchAll(/“([^”]+)” \[sentence/g)].map((match) => match[1]!)
  expect(quotes.length).toBeGreaterThan(1)
  for (const quote of quotes) expect(material).toContain(quote)
  expect(output).toContain('Hedged: “The effect may depend on genes.”')
})

test('the writer shortens the given text and adds no fact', async () => {
  const output = await runLane(
    'writer-v1',
    'Shorten this: In order to utilize the new system, it is important to note that all staff must make a decision prior to the end of the month.',
  )
  expect(output).toContain('To use the new system, all staff must decide before the end of the month.')
})

test('the writer corrects spelling, keeps the subject and recognises the purpose of a text', async () => {
  expect(await runLane('writer-v1', 'Proofread: Their going too the libary tomorow.')).toContain(
    "They're going to the library tomorrow.",
  )
  const copy = await runLane(
    'writer-v1',
    'I need a product description for a cast iron skillet, warm tone, about 80 words',
  )
  expect(copy).toContain('**A cast iron skillet**')
  expect(copy).not.toMatch(/about 80|I need/)
  const letter = await runLane('writer-v1', 'Draft a polite email declining a wedding invitation')
  expect(letter).toContain('I am sorry to say that I cannot accept')
  const notes = await runLane(
    'writer-v1',
    'Turn my bullet notes into a newsletter: new oven, bread class in May, closed on Mondays',
  )
  for (const piece of ['**New oven**', '**Bread class in May**', '**Closed on Mondays**'])
    expect(notes).toContain(piece)
})

test('the support lane orders several tickets by priority', async () => {
  const output = await runLane(
    'support-v1',
    'Triage these tickets:\n1. Typo on the pricing page\n2. I need a refund by Friday\n3. The site is down for all of our users',
  )
  const rows = [...output.matchAll(/^\| (\d) \| (P\d) \|/gm)].map((row) => `${row[1]} ${row[2]}`)
  expect(rows).toEqual(['3 P1', '2 P2', '1 P3'])
})

test('the support lane extracts category, facts and the chargeback risk', async () => {
  const output = await runLane(
    'support-v1',
    'Customer says: I was charged twice for order #A1234 ($59.90) and nobody replied! Unacceptable. I want it back or I will call my bank.',
  )
  expect(output).toContain('| category | billing |')
  expect(output).toContain('Reference: A1234')
  expect(output).toContain('chargeback risk')
})

test('the coder reports syntax errors with their line, and smells in valid code', async () => {
  const invalidCode = await runLane('coder-v1', 'Fix:\n```ts\nconst a: number = 1\nlet b = ;\n```')
  expect(invalidCode).toContain('Line 2, column 9')
  const output = await runLane(
    'coder-v1',
    'Review:\n```js\nfunction f(a, b) {\n  var x = 1\n  if (a == b && x) console.log(a)\n}\n```',
  )
  expect(output).toContain('the most complex is `f` with 3 paths')
  expect(output).toContain('Line 2: `var` leaks')
  expect(output).toContain('`f`: each of its 3 paths, and `a`, `b` when empty')
})

test('the coder reviews Python, SQL and JSON too', async () => {
  const python = await runLane(
    'coder-v1',
    'Review\n\ndef f(a, b=[]):\n    try:\n        return a\n    except:\n        pass\n',
  )
  expect(python).toContain('mutable default argument')
  expect(python).toContain('bare `except:`')
  const sql = await runLane('coder-v1', 'Check\n```sql\nDELETE FROM users;\nSELEC 1\n```')
  expect(sql).toContain('`DELETE` without `WHERE` touches every row.')
  expect(sql).toContain('Line 2, column 7: Unexpected `1`')
  expect(await runLane('coder-v1', 'Check\n```json\n{"a": [1, 2,]}\n```')).toContain(
    'Line 1, column 13: A trailing comma',
  )
})

test('the coder finds code after a question', async () => {
  const loop = await runLane('coder-v1', 'Why does this loop never end? while (i < 10) { console.log(i) }')
  expect(loop).toContain('The code parses.')
  expect(loop).toContain('Nothing in this loop changes what its condition tests')
  expect(await runLane('coder-v1', 'Is this valid? {"a": 1, "b": [1,2,}')).toContain('A trailing comma is not allowed')
  const output = await runLane(
    'coder-v1',
    'Review:\n```js\nasync function load(ids, url) { for (const id of ids) await get(url, id) }\n```',
  )
  expect(output).toContain('`await` inside a loop')
})

test('loops that may end are not reported as endless', async () => {
  for (const loop of [
    'while (i < 3) i++',
    'while (!done) work()',
    'while (a) { if (b) break }',
    'while (true) {}',
    'while (next()) {}',
  ])
    expect(await runLane('coder-v1', `Review:\n\`\`\`js\n${loop}\n\`\`\``)).not.toContain('Nothing in this loop')
})

test('the strategist reads options, criteria and scores from plain text', async () => {
  const options = await runLane(
    'strategist-v1',
    'Choose between Postgres, DynamoDB and Mongo: weigh cost, staff skills and growth',
  )
  expect(options).toContain(
    '“Postgres”, “DynamoDB” and “Mongo” are to be weighed by cost (33.3 %), staff skills (33.3 %) and growth (33.3 %)',
  )
  expect(options).toContain('What would settle it')
  expect(options).not.toMatch(/\| 3 \|/)
  expect(await runLane('strategist-v1', 'buy or lease delivery vans')).toContain(
    'The task states no criteria for “buy delivery vans” and “lease delivery vans”',
  )
  const scored = await runLane(
    'strategist-v1',
    'Options: A) hire 2 engineers, B) outsource, C) delay. Criteria: cost (40%), speed (40%), risk (20%). Scores: A cost 2 speed 3 risk 4; B cost 4 speed 4 risk 2; C cost 5 speed 1 risk 3',
  )
  expect(scored).toContain('“outsource” leads with 3.6 of 5, ahead of “delay” by 0.6.')
})

test('the strategist ranks a given matrix and reports which weight would change the result', async () => {
  const output = await runLane(
    'strategist-v1',
    'Rank:\n\noption,cost,speed,quality\nAWS,3,4,5\nGCP,4,4,4\nOn-prem,5,1,3\nweight,50,20,30',
  )
  expect(output).toContain('“GCP” leads with 4 of 5')
  expect(output).toContain('cost: at a weight of 37.5 % (now 50 %) “AWS” draws level.')
})

test('the comedian keeps the topic and the requested number of jokes', async () => {
  const output = await runLane('comedian-v1', 'Tell me four jokes about databases')
  expect(output).toContain('4 jokes')
  expect(output.match(/databases/gi)!.length).toBeGreaterThanOrEqual(4)
})

test('the comedian writes the requested form about the requested topic', async () => {
  expect(
    (await runLane('comedian-v1', 'a limerick on spreadsheets')).match(/spreadsheets.+\n.+\n.+\n.+\n.+/),
  ).toBeTruthy()
  expect(await runLane('comedian-v1', 'Roast my houseplants. I have killed eleven ferns.')).toContain(
    '# Your houseplants: 3 jokes',
  )
})

test('terminal control characters are removed from the output', async () => {
  for (const agentId of AGENTS) {
    const output = await runLane(agentId, 'Review \u001b[31mthis\u202e plan \u0007')
    for (const control of ['\u0007', '\u001b', '\u202e']) expect(output).not.toContain(control)
  }
})

test('every lane states that no model was used and stays within the output limit', async () => {
  const longTask = `Explain this:\n\n${'The river rose by 3 metres in 2021. Nobody had expected it. '.repeat(500)}`
  for (const agentId of AGENTS) {
    expect(await runLane(agentId, 'Plan a picnic for ten people')).toMatch(/no language model/)
    expect((await runLane(agentId, longTask)).length).toBeLessThanOrEqual(12_000)
  }
})

test('hostile text neither throws nor takes longer than three seconds', async () => {
  const hostileTexts = [
    `\`\`\`ts\n${'a?(b)=>('.repeat(30)}x${'):c'.repeat(30)}\n\`\`\``,
    `\`\`\`js\n${'+'.repeat(20_000)}c\n\`\`\``,
    `\`\`\`js\na${'.b()'.repeat(5000)}\n\`\`\``,
    `\`\`\`sql\nselect ${'not '.repeat(900)}b\n\`\`\``,
    `\`\`\`python\n${'def (\n'.repeat(4000)}\n\`\`\``,
    `${'['.repeat(15_000)}${']'.repeat(15_000)}`,
    `a${' '.repeat(31_000)}b`,
    '“'.repeat(31_000),
    '\n'.repeat(31_000),
    'between a '.repeat(3000),
    '1,'.repeat(15_000),
    '😀'.repeat(15_000),
    '',
  ]
  for (const text of hostileTexts) {
    for (const agentId of AGENTS) {
      const cpuBefore = process.cpuUsage()
      expect(typeof (await runLane(agentId, text))).toBe('string')
      // CPU time of this process, independent of other load on the machine.
      expect(process.cpuUsage(cpuBefore).user / 1000).toBeLessThan(3000)
    }
  }
})

test('the same task gives the same output on every machine; a change of output needs a new version', async () => {
  const digests: Record<string, string> = {}
  for (const agentId of AGENTS) {
    const texts = [
      'Compare cats vs dogs on cost and speed: 3, 4, 5, 60.',
      'Fix:\n```js\nlet a = (1 == 2)\n```',
      'Summarise:\n\nRain fell in May. It may fall again. Nobody knows why, 12 people asked.',
    ]
    const firstOutputs = await Promise.all(
      texts.map((text) => runLane(agentId, text, ['Earlier: the user likes tea.'])),
    )
    const secondOutputs = await Promise.all(
      texts.map((text) => runLane(agentId, text, ['Earlier: the user likes tea.'])),
    )
    expect(secondOutputs).toEqual(firstOutputs)
    digests[agentId] = createHash('sha256').update(firstOutputs.join('\0')).digest('hex').slice(0, 16)
  }
  expect(digests).toMatchInlineSnapshot(`
    {
      "analyst-v1": "d258f80cc377fb36",
      "coder-v1": "74f9226b2bb3e150",
      "comedian-v1": "027ef49898104a3c",
      "default": "e2700b9073987e96",
      "researcher-v2": "4627ddf27077395f",
      "strategist-v1": "ecb00bf820fc4251",
      "support-v1": "a167d3a2e08f5004",
      "writer-v1": "fa374a198d8f7f8c",
    }
  `)
})

test('a run whose deadline has passed fails without work', async () => {
  const result = await lane.execute({ ...task('default', 'hello'), signal: AbortSignal.abort() })
  expect(result).toMatchObject({ ok: false, reason: 'timeout', retryable: true })
})

test('only short tasks without code are momentary: the others are for the threads', () => {
  const isMomentary = (agentId: string, task: string) => createOfflineLane().isMomentary!(agentId, task)
  expect(isMomentary('comedian-v1', 'Tell me a joke about clocks.')).toBe(true)
  expect(isMomentary('default', 'What is 12 % of 250?')).toBe(true)
  expect(isMomentary('comedian-v1', 'x'.repeat(2_001))).toBe(false)
  expect(isMomentary('coder-v1', 'Fix it.')).toBe(false)
  const code = 'What is wrong here?\n```js\nfor (let i = 0; i <= a.length; i++) sum += a[i]\n```'
  expect(isMomentary('default', code)).toBe(false)
  expect(isMomentary('some-agent', code)).toBe(false)
})
