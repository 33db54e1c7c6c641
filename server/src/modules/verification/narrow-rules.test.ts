import { expect, test } from 'vitest'
import { verifyOutput } from './verification.ts'

const refusals = async (agentId: string, task: string, output: string) =>
  (await verifyOutput({ agentId, task, output, mode: 'live' })).checks
    .filter(({ passed, decides }) => !passed && decides)
    .map(({ name }) => name)

/** A right output that looks like a fault, and one beside it that has the fault, of the same task or of one like it. */
type Case = [name: string, agentId: string, task: string, right: string, wrong: string, otherTask?: string]
const CASES: readonly Case[] = [
  [
    'the last row of a table may have a rate',
    'analyst-v1',
    'Fees and fee per 1,000 by market, with a total row.\nmarket,sales,fees\nNorth,40000,160\nSouth,10000,90\nWest,50000,100',
    '| market | sales | fees | per mille |\n|---|---|---|---|\n| North | 40,000 | 160 | 4 |\n| South | 10,000 | 90 | 9 |\n| West | 50,000 | 100 | 2 |\n| total | 100,000 | 350 | 3.5 |',
    '| market | sales | fees | per mille |\n|---|---|---|---|\n| North | 40,000 | 160 | 4 |\n| South | 10,000 | 90 | 9 |\n| West | 50,000 | 100 | 2 |\n| total | 120,000 | 350 | 3.5 |',
  ],
  [
    'a calculation may go on after a first amount',
    'strategist-v1',
    'Cook: 1,900 € a month and 2 € of food for each of 30 meals on 20 days, or delivery at 5 € a meal. Which is cheaper?',
    'Cook: 1,900 € + 30 × 20 × 2 € = 1,900 € + 1,200 € = 3,100 €. Delivery: 30 × 20 × 5 € = 3,000 €. Delivery is cheaper by 100 €.',
    'Cook: 1,900 € and 30 × 20 × 2 = 1,300 €, so 3,200 €. Delivery: 30 × 20 × 5 = 3,000 €. Delivery is cheaper by 200 €.',
  ],
  [
    'rows of data are no form for the answer',
    'analyst-v1',
    'Count by state, as a JSON object, only JSON.\n[{"nr":"a","state":"open"},{"nr":"b","state":"shut"},{"nr":"c","state":"open"}]',
    '{"open": 2, "shut": 1}',
    'open: 2, shut: 1',
  ],
  [
    'what the values are is no key',
    'analyst-v1',
    'Net 100, VAT 20 %. Return JSON only, keys net, vat, gross, numbers with 2 decimals.',
    '{"net": 100.00, "vat": 20.00, "gross": 120.00}',
    '{"net": 100.00, "vat": 20.00, "total": 120.00}',
  ],
  [
    'a line that opens a block may stand for the change',
    'coder-v1',
    'Java: why is this never true?\nif (word == "yes") {\n  run();\n}',
    'Strings are compared with equals, not with `==`, which asks for the same object:\n\n```java\nif (word.equals("yes")) {\n```\n\nThe rest stays.',
    'Strings are compared with equals, not with `==`, which asks for the same object:\n\n```java\nif (word.equals("yes") {\n  run();\n}\n```',
  ],
  [
    'an error message forbids no word',
    'coder-v1',
    'Why does this fail?\nprint("Room " + 12)\nTypeError: can only concatenate str (not "int") to str',
    'You add text and a number. An int must become text first:\n\n```python\nprint("Room " + str(12))\n```',
    'Division of an int by an int stays an int, so what is left over is dropped.',
    'Explain in one sentence why 3 / 2 is 1 in C, and do not use "int".',
  ],
  [
    'a statement of SQL is no gap',
    'coder-v1',
    'SQL for Postgres, statement only: add a row to visits(day date, guests int) with :day and :guests.',
    'INSERT INTO visits (day, guests) VALUES (:day, :guests);',
    'TODO',
  ],
  [
    'a day may stand before its place or after it',
    'writer-v1',
    'Two sentences for the parish letter. Anna Vogt, born 4 May 1941 in Passau, died 9 June 2025 in Wels.',
    'Anna Vogt died in Wels on 9 June 2025. She was born in Passau on 4 May 1941.',
    'In the spring sale Adler sold 290 boxes and Bergmann sold 310 boxes.',
    'One sentence for the parish letter. In the spring sale Adler sold 310 boxes and Bergmann sold 290 boxes.',
  ],
  [
    'signs of a format are no words of a language',
    'coder-v1',
    'C beginner. crash, why?\n\nchar *text;\nscanf("%s", text);\nprintf("%s %s\\n", text, text);',
    '`text` points to no memory yet, so `scanf` writes to a random address. Give it room:\n\n```c\nchar text[50];\nscanf("%49s", text);\n```',
    '`text` zeigt auf keinen Speicher, also schreibt `scanf` an eine zufällige Stelle und das Programm stürzt ab. Gib der Variablen Platz, dann ist der Fehler weg und die Eingabe wird gelesen.',
    'I am a beginner in C. Please explain why my program crashes when I read a name into a pointer with scanf.',
  ],
  [
    'a scaffold of a house is no template',
    'writer-v1',
    'Note to the neighbours: scaffold goes up on 3 May, noise on weekdays from 8 to 16. Sign: Ida',
    'Dear neighbours, the scaffold goes up on 3 May, and on weekdays there will be noise from 8 to 16. Thank you! Ida',
    'Dear neighbours, the scaffold of [NAME OF COMPANY] goes up on 3 May, and on weekdays there will be noise from 8 to 16. Thank you! Ida',
  ],
]

test.each(CASES)('%s', async (_name, agentId, task, right, wrong, otherTask = task) => {
  expect(await refusals(agentId, task, right)).toEqual([])
  expect(await refusals(agentId, otherTask, wrong)).not.toEqual([])
})

test('a text in other words is at most in doubt', async () => {
  const task =
    'Rewrite so that a child understands it, 2 sentences: "The authority has prohibited irrigation owing to persistent drought; contraventions incur penalties."'
  const reworded =
    'It has not rained for a very long time, so nobody may use a garden hose right now. Whoever does it anyway will have to pay money.'
  expect(await refusals('writer-v1', task, reworded)).toEqual([])
})

test.each([
  ['Ms Ito is a regular guest. Never mention her address, Lindenstraat 4.', 'Dear Ms Ito, your table is ready.', true],
  ['Ms Ito is a regular guest. Never mention her address, Lindenstraat 4.', 'We deliver to Lindenstraat 4.', false],
  ['The shop closes on 4 May. This is confidential.', 'Please come by before 4 May, when we close.', false],
  ['The discount will be 35 %. Do not tell customers before Monday.', 'Soon everything is 35 % cheaper!', false],
  ["The user signs private mails with 'Nora from flat 2'.", 'See you tomorrow. Nora from flat 2', true],
])('an order not to tell holds for what it is about: %s %s', async (memory, output, isRight) => {
  const task = 'Write two short sentences to the guest about tomorrow.'
  const { checks } = await verifyOutput({ agentId: 'support-v1', task, output, mode: 'live', context: [memory] })
  const leak = checks.find(({ name }) => name === 'safe')
  expect(leak!.passed || !leak!.decides).toBe(isRight)
})
