import { expect, test } from 'vitest'
import type { CheckName } from './lane-checks.ts'
import { verifyOutput } from './verification.ts'

const CONTENT: readonly CheckName[] = ['asked_for', 'grounded', 'facts_used', 'recomputed', 'result_right']

const failedChecks = async (agentId: string, task: string, output: string): Promise<CheckName[]> =>
  (await verifyOutput({ agentId, task, output, mode: 'live' })).checks
    .filter((check) => !check.passed && CONTENT.includes(check.name))
    .map(({ name }) => name)

/** What a check refuses, and the right answer to the same task that it takes. */
type Pair = { what: string; by: CheckName; agentId: string; task: string; wrong: string; right: string }

const PAIRS: readonly Pair[] = [
  {
    what: 'one figure of a column that does not follow as the others do',
    by: 'result_right',
    agentId: 'analyst-v1',
    task: 'Cost per seat, please:\nAula: 4,200 cost, 120 seats\nBasement: 1,950 cost, 60 seats\nCinema: 9,100 cost, 260 seats',
    wrong: '| Room | per seat |\n|---|---|\n| Aula | 35.00 |\n| Basement | 37.50 |\n| Cinema | 35.00 |',
    right: '| Room | per seat |\n|---|---|\n| Aula | 35.00 |\n| Basement | 32.50 |\n| Cinema | 35.00 |',
  },
  {
    what: 'rows whose own figures are not in the order asked for',
    by: 'result_right',
    agentId: 'strategist-v1',
    task: 'Rank by gain per cost, best first. Kiosk: cost 10, gain 25. Van: cost 20, gain 80. Stall: cost 5, gain 15.',
    wrong: '1. Kiosk – 2.5\n2. Van – 4.0\n3. Stall – 3.0',
    right: '1. Van – 4.0\n2. Stall – 3.0\n3. Kiosk – 2.5',
  },
  {
    what: 'a list that is not in the order of its letters',
    by: 'result_right',
    agentId: 'default',
    task: 'Sort a-z: quince, damson, medlar, bilberry',
    wrong: 'bilberry, medlar, damson, quince',
    right: 'bilberry, damson, medlar, quince',
  },
  {
    what: 'a conversion with the rate given',
    by: 'result_right',
    agentId: 'analyst-v1',
    task: '1 CHF = 1.04 EUR. Convert 250 CHF into EUR.',
    wrong: '250 CHF are 240.38 EUR.',
    right: '250 CHF are 260.00 EUR.',
  },
  {
    what: 'a point that must be mentioned',
    by: 'asked_for',
    agentId: 'writer-v1',
    task: 'Mail to the neighbours. Must mention: street closed on 4 July, tombola, bring plates.',
    wrong: 'Dear neighbours, our street will be closed on 4 July for the party. Please bring plates. See you there!',
    right:
      'Dear neighbours, our street will be closed on 4 July for the party. Please bring plates. There will be a tombola!',
  },
  {
    what: 'words beside a number that was to stand alone',
    by: 'asked_for',
    agentId: 'analyst-v1',
    task: 'Answer with a number only: 14 boxes of 12 eggs, how many eggs?',
    wrong: 'In the 14 boxes there are altogether 168 eggs.',
    right: '168',
  },
  {
    what: 'columns in another order',
    by: 'asked_for',
    agentId: 'analyst-v1',
    task: 'As a markdown table with columns Name, Age, Town: Ida 31 Bonn; Bo 44 Kiel; Eva 27 Ulm',
    wrong: '| Name | Town | Age |\n|---|---|---|\n| Ida | Bonn | 31 |\n| Bo | Kiel | 44 |\n| Eva | Ulm | 27 |',
    right: '| Name | Age | Town |\n|---|---|---|\n| Ida | 31 | Bonn |\n| Bo | 44 | Kiel |\n| Eva | 27 | Ulm |',
  },
  {
    what: 'one item that is too long, where each has its limit',
    by: 'asked_for',
    agentId: 'writer-v1',
    task: 'Two subject lines for a bakery newsletter, at most 30 characters each',
    wrong: '1. Fresh rolls\n2. Everything you always wanted to know about sourdough',
    right: '1. Fresh rolls\n2. Sourdough for beginners',
  },
  {
    what: 'the change from one month to the next',
    by: 'result_right',
    agentId: 'analyst-v1',
    task: 'Month-over-month growth for: Jan 400, Feb 440, Mar 462',
    wrong: '| Month | Growth |\n|---|---|\n| Feb | 10 % |\n| Mar | 7 % |',
    right: '| Month | Growth |\n|---|---|\n| Feb | 10 % |\n| Mar | 5 % |',
  },
  {
    what: 'net and tax that do not add up to gross',
    by: 'recomputed',
    agentId: 'analyst-v1',
    task: 'Work for 3 days, 400 a day, VAT 20 %. Net, VAT and gross, please.',
    wrong: '| Net | 1,200.00 |\n|---|---|\n| VAT 20 % | 240.00 |\n| Gross | 1,540.00 |',
    right: '| Net | 1,200.00 |\n|---|---|\n| VAT 20 % | 240.00 |\n| Gross | 1,440.00 |',
  },
  {
    what: 'a guard that comes after the division',
    by: 'recomputed',
    agentId: 'coder-v1',
    task: 'This crashes with ZeroDivisionError when there are no rows, fix it:\n```python\ndef mean(total, rows):\n    return total / rows\n```',
    wrong:
      '```python\ndef mean(total, rows):\n    value = total / rows\n    if rows == 0:\n        return None\n    return value\n```',
    right: '```python\ndef mean(total, rows):\n    if rows == 0:\n        return None\n    return total / rows\n```',
  },
  {
    what: 'brackets that do not match in a language without a parser',
    by: 'recomputed',
    agentId: 'coder-v1',
    task: 'PHP function that doubles a number.',
    wrong: '```php\nfunction twice(int $n): int {\n    return (2 * $n;\n}\n```',
    right: '```php\nfunction twice(int $n): int {\n    return (2 * $n);\n}\n```',
  },
  {
    what: 'a query that sorts the other way',
    by: 'asked_for',
    agentId: 'coder-v1',
    task: 'SQL: table runs(id, runner, points). The 2 runners with the highest points.',
    wrong: '```sql\nSELECT runner FROM runs ORDER BY points LIMIT 2;\n```',
    right: '```sql\nSELECT runner FROM runs ORDER BY points DESC LIMIT 2;\n```',
  },
  {
    what: 'what one name did, said of the other',
    by: 'grounded',
    agentId: 'researcher-v2',
    task: 'Who did what? "Imogen painted the ceiling. Torvald repaired the organ."',
    wrong: 'Torvald painted the ceiling. Imogen repaired the organ.',
    right: 'Imogen painted the ceiling. Torvald repaired the organ.',
  },
  {
    what: 'a beginning that was asked for',
    by: 'asked_for',
    agentId: 'writer-v1',
    task: 'Mail to the team about the picnic. Start with "Good news".',
    wrong: 'Dear team, the picnic takes place in the park.',
    right: 'Good news, dear team: the picnic takes place in the park.',
  },
  {
    what: 'fewer of two kinds of items than were asked for',
    by: 'asked_for',
    agentId: 'strategist-v1',
    task: 'Name 3 strengths and 2 threats of our kiosk.',
    wrong: 'Strengths:\n1. Place\n2. Coffee\n\nThreats:\n1. Rent\n2. Rain',
    right: 'Strengths:\n1. Place\n2. Coffee\n3. Hours\n\nThreats:\n1. Rent\n2. Rain',
  },
]

test.each(PAIRS)('$what is found, and nothing in the right answer', async ({ by, agentId, task, wrong, right }) => {
  expect(await failedChecks(agentId, task, wrong)).toContain(by)
  expect(await failedChecks(agentId, task, right)).toEqual([])
})

test.each([
  ['analyst-v1', '[{"n":"Ida","h":8},{"n":"Bo","h":0},{"n":"Cy","h":6}]\navg hours of those who came', '7'],
  [
    'analyst-v1',
    'Team A: 10 games, avg score 4. Team B: 30 games, avg score 8. What is the overall average?',
    'The overall average is 7.',
  ],
  [
    'analyst-v1',
    '52 to 48 among 400 people: a lead or noise?',
    'Noise: the standard error is √(0.52·0.48/400) ≈ 2.5 points.',
  ],
  ['default', 'is 8:50 + 25 min before or after 9:20? bus at 9:20', 'Before: you are done at 9:15.'],
  ['writer-v1', 'Line for the newsletter: boots -40% until Sunday', 'Boots are 40% off until Sunday'],
  [
    'researcher-v2',
    'Which claim is supported by the table, and which is not? Claims: (i) boats rose. (ii) cars fell. Table, units: boats 4 then 6; cars 3 then 5.',
    '(i) is supported, from 4 to 6. (ii) is not, cars rose too.',
  ],
  [
    'analyst-v1',
    'Reports list 9, 17 and 4 cases. Total and the range?',
    '30 cases in total; the reports range from 4 to 17.',
  ],
  [
    'analyst-v1',
    '2,000 at 3 % a year compounded annually, two years. What do I end up with?',
    'About 2,121.80, of which 121.80 is interest.',
  ],
  [
    'default',
    'Turn into a list, 1 bullet per job: Ana sweeps, Bo mops, Cy dusts',
    '- Ana sweeps\n- Bo mops\n- Cy dusts',
  ],
  [
    'writer-v1',
    'Opening of a letter to a baker, two sentences',
    "Bread has to be good, and people notice when it isn't. I would like to bake it with you.",
  ],
  [
    'support-v1',
    'policy: vouchers cannot be combined. Customer: "can I use SPRING5 (5%) and the 20% card on my 50 euro order?" Reply.',
    'Only one of them, as vouchers cannot be combined. With the card it is 40 €, with SPRING5 it would be 47.50 €.',
  ],
  [
    'analyst-v1',
    'Forecast next month with the average of the last three: 210, 220, 230',
    '220, the average of the three.',
  ],
  [
    'default',
    'Translate to French: "The rent is $2,340.50, due on June 4."',
    'Le loyer est de 2 340,50 $, à payer le 4 juin.',
  ],
  [
    'researcher-v2',
    'Does the text mention wolves? "In 2019 foxes and lynx were seen in the valley."',
    'No, it only names foxes and lynx.',
  ],
  [
    'support-v1',
    'Customer: "There is no "undo" button!" There is one, in the menu Edit. Answer.',
    'The undo button is at the top of the menu Edit.',
  ],
  ['default', 'How do I write "Grüße" in all capitals?', 'GRÜSSE, or GRÜẞE since 2017.'],
  ['analyst-v1', 'These semicolon-separated values: 4;8;15. Their sum?', 'The sum is 27, if all three count.'],
  [
    'coder-v1',
    'postgres: employees(id, name, age). Oldest employee first.',
    '```sql\nSELECT name, age FROM employees ORDER BY age DESC;\n```',
  ],
  [
    'default',
    'I have 2 questions: what is a VPN, and is it legal',
    '- A VPN is a tunnel.\n- It is legal.\n- At home it is rarely needed.',
  ],
  ['default', 'Sort alphabetically and remove duplicates: plum, fig, plum, date, fig', 'date, fig, plum'],
] as const)('%s: %s', async (agentId, task, output) => {
  expect(await failedChecks(agentId, task, output)).toEqual([])
})
