import { describe, expect, test } from 'vitest'
import { createOfflineLane } from './offline.ts'

/** What a caller gives an offline lane is used, and what it does not give is not invented. */
const lane = createOfflineLane()

async function work(agentId: string, task: string, context: string[] = []): Promise<string> {
  const signal = AbortSignal.timeout(30_000)
  const deadline = new Date(Date.now() + 30_000)
  const result = await lane.execute({ runId: 'run', agentId, task, context, deadline, signal })
  if (!result.ok) throw new Error(result.message)
  return result.output
}

/** Slots such as [name] or [your date], which nobody has filled in. */
const SLOT = /\[[a-z][^\]\n]{1,60}\]/i

describe('writer', () => {
  test.each([
    [
      'Write a product announcement for the Aurora Lamp. It costs $49, ships on March 3, and is made by Lumen Works.',
      ['Aurora Lamp', '$49', 'March 3', 'Lumen Works'],
    ],
    [
      'Write an email to Dana about the launch of Bluefin on 14 May at 10:00 in Room 4, price 29 EUR. Mention the code SAVE20.',
      ['Dana', 'Bluefin', '14 May', '10:00', 'Room 4', '29 EUR', 'SAVE20'],
    ],
    [
      'Write a product description.\n\nProduct: Aurora Lamp\nPrice: $49\nAvailable: 3 March 2026\nColours: red, blue',
      ['Aurora Lamp', '$49', '3 March 2026', 'red, blue'],
    ],
    [
      'Draft a LinkedIn post about our new office in Lisbon. It opens on 1 June. 40 people will work there. Ana Reis runs it.',
      ['Lisbon', '1 June', '40 people', 'Ana Reis'],
    ],
    [
      'Write an invitation to our summer party on 12 July 2026 at the Boathouse, dress code white, signed by Maria Lopez.',
      ['12 July 2026', 'Boathouse', 'white', 'Maria Lopez'],
    ],
  ])('uses every fact of: %s', async (task, facts) => {
    const output = await work('writer-v1', task)
    for (const fact of facts) expect(output).toContain(fact)
    expect(output).not.toMatch(SLOT)
  })

  test.each([
    'Write an email to my landlord',
    'Draft a polite email declining a wedding invitation',
    'Write a cover letter',
    'Write a blog post about remote work',
    'Give me five slogans for a bakery called Crumb',
    'x',
  ])('leaves no slot to fill in: %s', async (task) => expect(await work('writer-v1', task)).not.toMatch(SLOT))

  test('keeps a limit of words that stands after the facts, and a number of lines', async () => {
    const short = await work(
      'writer-v1',
      'Write a notice about the lift. It is out of order until Friday. Call 555 0100. Keep it under 40 words.',
    )
    expect(short.split(/\s+/).length).toBeLessThanOrEqual(40)
    for (const fact of ['lift', 'Friday', '555 0100']) expect(short).toContain(fact)
    const slogans = await work('writer-v1', 'Give me three slogans for a bakery called Crumb')
    expect(slogans.match(/^\d\. .*Crumb/gm)).toHaveLength(3)
  })
})

describe('coder', () => {
  const review = (language: string, code: string) =>
    work('coder-v1', `Find the bug:\n\`\`\`${language}\n${code}\n\`\`\``)

  test.each([
    ['js', 'for (let i = 0; i <= a.length; i++) s += a[i]', 'off by one', 'i < a.length'],
    ['ts', 'for (let i = a.length; i >= 0; i--) f(a[i])', 'off by one', 'a.length - 1'],
    ['python', 'for i in range(len(xs) + 1):\n    f(xs[i])', 'off by one', 'range(len(xs))'],
    ['java', 'for (int i = 0; i <= arr.length; i++) { sum += arr[i]; }', 'off by one', 'i < arr.length'],
    ['go', 'for i := 0; i <= len(xs); i++ { f(xs[i]) }', 'off by one', 'i < len(xs)'],
    [
      'js',
      'async function save(d) { await db.put(d) }\nasync function main(d) {\n  save(d)\n}',
      'missing await',
      'await save(d)',
    ],
    [
      'js',
      'async function load() {\n  const response = await fetch(url)\n  const data = response.json()\n  return data.name\n}',
      'missing await',
      'await response.json()',
    ],
    [
      'python',
      'async def work():\n    await sleep(1)\n\nasync def main():\n    work()',
      'missing await',
      '    await work()',
    ],
    ['js', 'const user = users.find((u) => u.id === id)\nshow(user.name)', 'unhandled null', 'show(user?.name)'],
    ['js', "const n = document.querySelector('#n').value", 'unhandled null', "querySelector('#n')?.value"],
    ['python', "m = re.match(r'a', s)\nreturn m.group(0)", 'unhandled null', undefined],
    [
      'python',
      'def add(item, items=[]):\n    items.append(item)\n    return items',
      'mutable default argument',
      'items=None',
    ],
    ['js', "db.query(`select * from users where id = '$\u007bid}'`)", 'SQL by concatenation', '$1'],
    ['python', 'cur.execute(f"select * from t where id = {user_id}")', 'SQL by concatenation', '(user_id,)'],
    ['java', 'String q = "SELECT * FROM t WHERE n = \'" + name + "\'";', 'SQL by concatenation', undefined],
    [
      'js',
      'function area(width, height) { return width * height }\nconst x = area(height, width)',
      'swapped arguments',
      'area(width, height)',
    ],
  ])('%s: %s is %s', async (language, code, defect, correction) => {
    const output = await review(language, code)
    expect(output).toContain(defect)
    if (correction !== undefined) expect(output).toContain(correction)
  })

  test.each([
    ['js', 'for (let i = 0; i < a.length; i++) s += a[i]'],
    ['js', 'for (let i = 1; i <= a.length; i++) s += a[i - 1]'],
    ['js', 'const user = users.find((u) => u.id === id)\nif (!user) return\nshow(user.name)'],
    ['js', 'const user = users.find((u) => u.id === id)\nshow(user?.name)'],
    ['js', 'async function save(d) {}\nasync function main(d) {\n  await save(d)\n  return save(d)\n}'],
    ['js', "db.query('select * from users where id = $1', [id])"],
    ['python', 'def add(item, items=None):\n    return items'],
    ['python', 'cur.execute("select * from t where id = %s", (user_id,))'],
    ['js', 'function area(width, height) { return width * height }\nconst x = area(width, height)'],
  ])('%s: %s has none of them', async (language, code) =>
    expect(await review(language, code)).not.toContain('## Defects'),
  )

  test('the corrected program is the given one with the defect gone', async () => {
    const output = await review(
      'js',
      'function sum(a) {\n  let s = 0\n  for (let i = 0; i <= a.length; i++) s += a[i]\n  return s\n}',
    )
    const corrected = /## Corrected\n\n```js\n([\s\S]+?)\n```/.exec(output)![1]!
    expect(new Function(`${corrected}; return sum([1, 2, 3])`)()).toBe(6)
  })

  test('writes a small function that is asked for often, and stubs nothing', async () => {
    const python = await work('coder-v1', 'Write a Python function that reverses a string')
    expect(python).toContain('return text[::-1]')
    for (const task of ['hello', 'Write a parser for my format', 'Write a SQL query for the top departments'])
      expect(await work('coder-v1', task)).not.toMatch(/not written yet|NotImplemented|your code|TODO|\[[a-z]/i)
  })
})

describe('strategist', () => {
  test('weighs figures by the stated criteria', async () => {
    const output = await work(
      'strategist-v1',
      'Compare vendor A and vendor B. Criteria: cost 60%, speed 40%. Vendor A costs $10k and takes 3 months. Vendor B costs $20k and takes 1 month.',
    )
    expect(output).toContain('| vendor A | 5 | 1.67 | 3.67 |')
    expect(output).toContain('| vendor B | 2.5 | 5 | 3.5 |')
  })

  test('says that there are no criteria instead of scoring every option 3', async () => {
    const output = await work('strategist-v1', 'Should we rent or buy the vans?')
    expect(output).toContain('states no criteria')
    expect(output).not.toMatch(/\| 3 \|/)
  })

  test('says that criteria without evidence decide nothing, and that evidence without criteria is weighted equally', async () => {
    expect(await work('strategist-v1', 'Options: Postgres, MySQL. Criteria: cost 50%, ease 50%.')).toContain(
      'the task says nothing about how they do on them',
    )
    const output = await work(
      'strategist-v1',
      'Hire vs outsource. Hiring is slow and expensive. Outsourcing is fast but risky.',
    )
    expect(output).toContain('You state no criteria')
    expect(output).toContain('“outsource” leads')
  })
})

describe('analyst', () => {
  test.each([
    ['month,orders,weight (kg)\nJan,10,3.5\nFeb,12,4.1\nMar,9,2.8\nWhat is the mean?', '“weight (kg)” is in kg.'],
    ['Monthly revenue: Jan $1200, Feb $1350, Mar $1100, Apr $1500', 'in $, as the task writes it'],
    ['Values: 3, 5, 8, 13, 21', 'No unit is given'],
  ])('states unit and rounding: %s', async (task, unit) => {
    const output = await work('analyst-v1', task)
    expect(output).toContain(unit)
    expect(output).toContain('rounded')
  })
})

describe('support', () => {
  test('cites the policy that it was given, as it stands, and only what bears on the message', async () => {
    const output = await work(
      'support-v1',
      'Reply using our policy.\n\nPolicy: Refunds are possible within 30 days with a receipt. Opened software is excluded. Shipping is not refunded.\n\nCustomer: I bought a kettle 10 days ago, order 4711. I want a refund of price and shipping.',
    )
    expect(output).toContain(
      'Our policy says: “Refunds are possible within 30 days with a receipt.” “Shipping is not refunded.”',
    )
    expect(output).not.toContain('Opened software')
    expect(output).toContain('4711')
    expect(output).not.toMatch(SLOT)
  })
})

describe('default does sums, statistics and code itself', () => {
  test.each([
    ['What is 17 * 23?', '17 × 23 = 391.'],
    ['15% of 240', '15 % of 240 = 36.'],
    ['What is the sum of 3, 4 and 5?', 'is 12.'],
    ['average of 10, 20, 45', 'is 25.'],
    ['what is 7 plus 8', '= 15.'],
    ['Compute (2 + 3) * 4 / 7', 'Rounded; with six decimals it is 2.857143.'],
    ['median of 1, 9, 4, 2', 'is 3.'],
    ['Is there a bug? for (let i = 0; i <= items.length; i++) { f(items[i]) }', 'off by one'],
  ])('%s', async (task, answer) => expect(await work('default', task)).toContain(answer))

  test.each(['Call me at 555-123-4567', '2026-11-16', 'What is 5 / 0?', 'Write 3 jokes', '1 +', '((((('])(
    '%s is no sum',
    async (task) => expect(await work('default', task)).not.toContain('# Calculation'),
  )
})

test('what was recalled is used where it has to do with the task, and is not mistaken for material', async () => {
  const context = [
    'The door code of the Berlin office is 4711.',
    'Task: Write a poem.\n\nOutcome: # Poem: Cats\n\nCats sleep.',
  ]
  expect(await work('default', 'What is the door code of the Berlin office?', context)).toContain(
    '- The door code of the Berlin office is 4711.',
  )
  const post = await work('writer-v1', 'Write a LinkedIn post about our bakery in Lisbon', context)
  expect(post).not.toMatch(/Cats|4711|Rewrite/)
})
