import { expect, test } from 'vitest'
import { verifyOutput } from './verification.ts'

/** What docs/verification.md says is refused, in the words of different people, each with an output that is right. */
type Promised = readonly [agentId: string, task: string, wrong: string, right: string]

const words = (count: number) => `${'blue boats sail '.repeat(40).split(' ').slice(0, count).join(' ')}.`

const LIMITS: readonly Promised[] = [
  ['writer-v1', 'Blurb on blue boats, no more than 20 words', words(26), words(19)],
  ['writer-v1', 'Blurb on blue boats. Keep it under 20 words.', words(26), words(19)],
  ['writer-v1', 'Blurb on blue boats (max. 20 words)', words(22), words(20)],
  ['writer-v1', 'Blurb on blue boats, ≤ 20 words', words(23), words(12)],
  ['writer-v1', 'Blurb on blue boats, 20 words max', words(23), words(18)],
  ['writer-v1', 'Blurb on blue boats, 20 words or fewer', words(23), words(18)],
  ['writer-v1', 'Blurb on blue boats, not exceeding 20 words', words(23), words(18)],
  ['writer-v1', 'Blurb on blue boats. Limit: 20 words', words(23), words(18)],
  ['writer-v1', 'Blurb on blue boats in exactly 20 words', words(17), words(20)],
  ['writer-v1', 'Blurb on blue boats, between 15 and 20 words', words(29), words(17)],
  ['writer-v1', 'Blurb on blue boats, 15-20 words', words(9), words(17)],
  ['writer-v1', 'Blurb on blue boats, at least 20 words', words(9), words(21)],
  [
    'writer-v1',
    'Kurzer Text über blaue Boote, höchstens 10 Wörter',
    `${'blaue Boote segeln '.repeat(5)}.`,
    'Blaue Boote segeln gern.',
  ],
  [
    'writer-v1',
    'Texte sur les bateaux bleus, 10 mots maximum',
    `${'les bateaux bleus '.repeat(5)}.`,
    'Les bateaux bleus voguent.',
  ],
  [
    'writer-v1',
    'Texto sobre barcos azules, máximo 10 palabras',
    `${'los barcos azules '.repeat(5)}.`,
    'Los barcos azules navegan.',
  ],
  [
    'writer-v1',
    'Tagline for blue boats, under 40 characters',
    'Blue boats that will carry you across every lake there is',
    'Blue boats, calm lakes',
  ],
  [
    'writer-v1',
    'Describe blue boats in one sentence.',
    'Blue boats are built of oak. They sail on the lake every day.',
    'Blue boats are built of oak and sail on the lake.',
  ],
  [
    'writer-v1',
    'Describe blue boats in max two sentences.',
    'Blue boats are built of oak. They sail on the lake. They are painted every spring.',
    'Blue boats are built of oak. They sail on the lake.',
  ],
  [
    'writer-v1',
    'Describe blue boats in 2-3 sentences.',
    'Blue boats are built of oak. They sail on the lake. They are painted every spring. We all love them very much. They are very old.',
    'Blue boats are built of oak. They sail on the lake.',
  ],
  ['writer-v1', "Blurb on blue boats. Don't go over twenty words.", words(26), words(19)],
  ['writer-v1', 'Blurb on blue boats in 20 words or less', words(24), words(19)],
  ['writer-v1', 'Blurb on blue boats, a minimum of 20 words', words(15), words(21)],
  ['writer-v1', 'Blurb on blue boats. Word limit: 20', words(23), words(19)],
  [
    'writer-v1',
    'Kurzer Text über blaue Boote, nicht länger als 10 Wörter',
    'Blaue Boote segeln gern, sie sind aus Holz und sehr leicht gebaut.',
    'Blaue Boote segeln gern.',
  ],
  [
    'writer-v1',
    'Mail about blue boats. Subject max 4 words, body under 12 words.',
    'Subject: Blue boats\n\nBlue boats sail on the lake, and they are painted blue every spring by the very same crew of old men.',
    'Subject: Blue boats\n\nBlue boats sail on the lake, and some sail home.',
  ],
  [
    'writer-v1',
    'Give me a headline on blue boats, max 5 words',
    'Blue boats sail on the lake again',
    'Blue boats sail again',
  ],
  [
    'writer-v1',
    'Two taglines for blue boats, at most 4 words each',
    '- Blue boats sail on and on\n- Calm and blue',
    '- Blue boats sail on\n- Calm and blue',
  ],
]

const FORMS: readonly Promised[] = [
  [
    'writer-v1',
    "Blurb on blue boats. Don't mention engines or buses. Must include the words oak, calm and lake.",
    'Blue boats of oak sail on the lake without an engine and stay calm.',
    'Blue boats of oak sail on a calm lake.',
  ],
  [
    'support-v1',
    "Reply to Ms Holm: boat BX-8812 is late by 3 days. Please mention the order number. Don't mention the harbour.",
    'Dear Ms Holm, your boat is late by 3 days. We are sorry for that.',
    'Dear Ms Holm, your boat BX-8812 is late by 3 days. We are sorry for that.',
  ],
  [
    'writer-v1',
    'Write 3 variants of "boat sold", max 3 words',
    '- Gone to a better lake\n- Sailed away\n- Boat is gone',
    '- Gone for good\n- Sailed away\n- Boat is gone',
  ],
  [
    'default',
    '3 puns on boats, numbered',
    '1. Oar else.\n2. Ship happens.',
    '1. Oar else.\n2. Ship happens.\n3. Sea you.',
  ],
  ['default', 'List 4 kinds of boats', '- Canoe\n- Kayak\n- Ferry', '- Canoe\n- Kayak\n- Ferry\n- Yacht'],
  ['default', 'Give me five boat names', '1. Ida\n2. Ada\n3. Eva\n4. Una', '1. Ida\n2. Ada\n3. Eva\n4. Una\n5. Ute'],
  ['default', 'give me 4 words that rhyme with boat', '- coat\n- goat\n- moat', '- coat\n- goat\n- moat\n- float'],
  [
    'analyst-v1',
    'Return JSON with keys boat and price: Ida costs 400',
    '{"boat": "Ida", "cost": 400}',
    '{"boat": "Ida", "price": 400}',
  ],
  [
    'analyst-v1',
    'Ida costs 400. Answer as JSON {"boat", "price"}',
    'Boat: Ida, price: 400',
    '{"boat": "Ida", "price": 400}',
  ],
  [
    'analyst-v1',
    'Ida costs 400. Reply with JSON only: {boat, price}',
    '{"boat": "Ida"}',
    '{"boat": "Ida", "price": 400}',
  ],
  [
    'coder-v1',
    'valid JSON please: an object with boat "Ida" and price 400',
    '{"boat": "Ida", "price": 400,}',
    '{"boat": "Ida", "price": 400}',
  ],
  [
    'analyst-v1',
    'Boats as CSV with header name,price: Ida 400, Una 300',
    'Ida costs 400 and Una costs 300.',
    'name,price\nIda,400\nUna,300',
  ],
  [
    'analyst-v1',
    'Put this in a table: Ida 400, Una 300',
    'Ida costs 400 and Una 300.',
    '| Boat | Price |\n|---|---|\n| Ida | 400 |\n| Una | 300 |',
  ],
  [
    'comedian-v1',
    'Boat joke. Do not mention fish or nets.',
    'My boat has more holes than fish.',
    'My boat has more holes than a cheese.',
  ],
  [
    'comedian-v1',
    'Boat joke without the word "water"',
    'A boat is a hole in the water.',
    'A boat is a hole you throw money into.',
  ],
  [
    'comedian-v1',
    'Boat joke, must contain the word anchor',
    'A boat is a hole you throw money into.',
    'My anchor left me. It was dragging me down.',
  ],
  [
    'comedian-v1',
    'Boat joke, must end with the word "anchor".',
    'My anchor left me, it was dragging me down.',
    'Why so heavy? Ask my anchor.',
  ],
  [
    'writer-v1',
    'Note to the crew of the boat, must mention Salvatore',
    'Dear crew, the boat leaves at six.',
    'Dear crew, the boat leaves at six with Salvatore.',
  ],
  [
    'comedian-v1',
    'Boat joke, must not contain the words "water" or "anchor"',
    'My anchor left me.',
    'My boat left me.',
  ],
  [
    'comedian-v1',
    'Boat joke. Avoid "sail", "sea" and "wind".',
    'My boat and the wind broke up.',
    'My boat left me for a windmill.',
  ],
  ['comedian-v1', 'Boat joke. The words "sail" and "crew" are forbidden.', 'My crew left me.', 'My boat left me.'],
  [
    'comedian-v1',
    'Boat joke with a captain, a gull AND an oar, all three must appear.',
    'A captain sells his oar to a fish.',
    'A captain sells his oar to a gull.',
  ],
  [
    'comedian-v1',
    'Boat joke. The words "rope" and "moon" must both appear.',
    'My boat tied a rope to the sky.',
    'My boat tied a rope to the moon.',
  ],
  [
    'writer-v1',
    'Invite the crew to the boat party on 8 May; mention that shoes must be left on pier 7.',
    'Dear crew, come to the boat party on 8 May and leave your shoes outside.',
    'Dear crew, come to the boat party on 8 May, and leave your shoes on pier 7.',
  ],
  [
    'writer-v1',
    'Boat note that mentions the pilot Salvatore and that we leave at 18:30.',
    'Dear crew, we leave with Salvatore at 19:30.',
    'Dear crew, we leave with Salvatore at 6:30 pm.',
  ],
  [
    'writer-v1',
    'Post on our boat race. Name Jonas and Mei.',
    'The boat race is won, and Jonas steered.',
    'The boat race is won: Jonas steered and Mei sang.',
  ],
  [
    'writer-v1',
    'Notiz über das Boot. Muss die Wörter "Regen" und "Ruder" enthalten.',
    'Das Boot liegt im Regen.',
    'Das Boot liegt im Regen, das Ruder auch.',
  ],
  [
    'writer-v1',
    'Boat text, end with "Don\'t forget the oars."',
    'The boat leaves at six. Bring your oars.',
    "The boat leaves at six. Don't forget the oars.",
  ],
  ['writer-v1', 'Sign for the boat, capitals only', 'Do NOT lean out', 'DO NOT LEAN OUT'],
  ['default', 'packing list for a boat trip, 4 items', '1. Oars\n2. Rope\n3. Hat', '1. Oars\n2. Rope\n3. Hat\n4. Map'],
  ['default', 'I need 3 boat names', '- Ida\n- Ada', '- Ida\n- Ada\n- Una'],
  [
    'analyst-v1',
    'CSV output please (semicolon), header boat;price: Ida 400, Una 300',
    'boat,price\nIda,400\nUna,300',
    'boat;price\nIda;400\nUna;300',
  ],
  [
    'analyst-v1',
    'Boats as CSV with ; as delimiter, columns name and price: Ida 400, Una 300',
    'name,price\nIda,400\nUna,300',
    'name;price\nIda;400\nUna;300',
  ],
  [
    'analyst-v1',
    'A table with the columns Boat, Price, Year: Ida 400 1990, Una 300 1985',
    '| Boat | Price |\n|---|---|\n| Ida | 400 |\n| Una | 300 |',
    '| Boat | Price | Year |\n|---|---|---|\n| Ida | 400 | 1990 |\n| Una | 300 | 1985 |',
  ],
  [
    'default',
    'as xml please: boat with name Ida and price 400',
    '<boat><name>Ida</name><price>400</boat>',
    '<boat><name>Ida</name><price>400</price></boat>',
  ],
  [
    'coder-v1',
    'Schema\nboats(id, name, price)\nharbours(id, name)\ncrews(id, boat_id)\n\nBoat names with prices, highest first. MySQL.',
    '```sql\nSELECT name, price FROM boats ORDER BY price ASC;\n```',
    '```sql\nSELECT name, price FROM boats ORDER BY price DESC, name ASC;\n```',
  ],
  [
    'coder-v1',
    'Write a JavaScript function that doubles a boat price. Call it doublePrice.',
    '```js\nfunction double(n) {\n  return 2 * n\n}\n```',
    '```js\nfunction doublePrice(n) {\n  return 2 * n\n}\n```',
  ],
  [
    'support-v1',
    'Prices include 19 % tax. Answer Bo, who mentions Una: the boat is free. Quote the case number. Case: HV-77120.',
    'Dear Bo, the boat is free.',
    'Dear Bo, the boat is free. Your case is HV-77120.',
  ],
  [
    'writer-v1',
    "Boat text for the harbour. Don't use more than 12 words. Mention that with a wink.",
    'The boat is small and blue and old, but it sails on the lake all summer.',
    'The boat is small, but it sails.',
  ],
  [
    'writer-v1',
    'Boat race on 4 May. Must mention: free entry, the skipper (Dr. Amara Obi), cake.',
    'On 4 May Dr. Amara Obi races her boat. Admission costs nothing.',
    'On 4 May Dr. Amara Obi races her boat. Admission costs nothing, and there is cake.',
  ],
  [
    'writer-v1',
    'Farewell to the crew, include the line "It was never easy" and my address ida@example.org.',
    'Dear crew, it was never easy. Write to me!',
    'Dear crew, it was never easy. Write to me: ida@example.org',
  ],
  ['writer-v1', 'Write 4 hashtags for a boat', '#boat #lake #sail', '#boat #lake #sail #oak'],
  [
    'default',
    'Décris le bateau en une seule phrase.',
    'Le bateau est bleu. Il navigue sur le lac.',
    'Le bateau bleu navigue sur le lac.',
  ],
  [
    'coder-v1',
    'Go function that doubles an int',
    'def double(n):\n    return 2 * n',
    '```go\nfunc Double(n int) int { return 2 * n }\n```',
  ],
  [
    'coder-v1',
    'Rust: function that doubles an i32',
    '```python\ndef double(n):\n    return 2 * n\n```',
    '```rust\nfn double(n: i32) -> i32 { 2 * n }\n```',
  ],
]

const FIGURES: readonly Promised[] = [
  [
    'default',
    'sort these times earliest to latest: 7:45 pm, 12:05 am, 6:10 am',
    '6:10 am, 12:05 am, 7:45 pm',
    '12:05 am, 6:10 am, 7:45 pm',
  ],
  ['default', 'sort from largest to smallest: 4, 19, 7, 2', '2, 4, 7, 19', '19, 7, 4, 2'],
  ['default', "give me the word 'harbour' backwards", 'ruobrahh', 'ruobrah'],
  ['analyst-v1', 'Sum of 12, 30 and 41?', 'The sum is 85.', 'The sum is 83.'],
  ['analyst-v1', 'Average of these: 10 20 30 60', 'The average is 32.', 'The average is 30.'],
  ['analyst-v1', 'median please: 3, 9, 4, 8, 100', 'The median is 9.', 'The median is 8.'],
  ['default', 'What is 15 % of 240?', 'It is 34.', 'It is 36.'],
  ['default', 'By how many percent did sales grow from 80 to 92?', 'They grew by 13 %.', 'They grew by 15 %.'],
  ['analyst-v1', 'Tea 120, jam 310, salt 70. What share is jam?', 'Jam is 68 %.', 'Jam is 62 %.'],
  ['default', '12 inches in cm?', '12 inches are 32.5 cm.', '12 inches are 30.48 cm.'],
  ['default', 'Convert 2.5 kg to grams and 90 minutes to hours', '2,500 g and 1.3 hours', '2,500 g and 1.5 hours'],
  ['default', '1 furlong = 0.2012 km. 10 furlongs in km?', '2.21 km', '2.01 km'],
  ['default', 'How many days from 3 March to 17 March?', 'It is 15 days.', 'It is 14 days.'],
  ['default', 'What date is 3 weeks after 4 May 2025?', 'It is 22 May 2025.', 'It is 25 May 2025.'],
  ['default', 'Invoice of 28 May 2025, payable within 30 days. Last day to pay?', '30 June 2025.', '27 June 2025.'],
  ['default', 'The ferry leaves 13:50 and takes 2 h 25 min. When does it arrive?', 'At 16:05.', 'At 16:15.'],
  ['default', '15:00 in UTC+1: what time is it in UTC-3 and in UTC+9?', '11:00 and 22:00.', '11:00 and 23:00.'],
  ['default', 'Our club was founded on 9 May 1986. How old is it on 9 May 2026?', 'It is 30.', 'It is 40.'],
  ['default', 'If today is Monday, which weekday is it in 10 days?', 'A Friday.', 'A Thursday.'],
  ['default', '80 euros with 25 % discount?', 'You pay 65 euros.', 'You pay 60 euros.'],
  ['analyst-v1', 'Returns: 45 of 790 orders. Rate?', '45 of 790 = 6.3 %', '45 of 790 = 5.7 %'],
  ['analyst-v1', 'How many hours are 2 h 45 min as a decimal?', '2 h 45 min = 2.45 h', '2 h 45 min = 2.75 h'],
  [
    'analyst-v1',
    'Sort by price, cheapest first: Ida 400, Una 300, Eva 500',
    '1. Ida\n2. Una\n3. Eva',
    '1. Una\n2. Ida\n3. Eva',
  ],
  ['default', 'Sort these alphabetically: plum, fig, date, apple', 'apple, fig, date, plum', 'apple, date, fig, plum'],
  [
    'default',
    'Convert: 2,300 kg to tonnes, and 2 h 35 min to minutes',
    '2.3 t, and 2 h 35 min = 235 min',
    '2.3 t, and 2 h 35 min = 155 min',
  ],
  [
    'default',
    'In metres, 2 decimals: mast 90 in, oar 72 in, keel 48 in (1 in = 2.54 cm)',
    'mast 2.29 m, oar 1.93 m, keel 1.22 m',
    'mast 2.29 m, oar 1.83 m, keel 1.22 m',
  ],
  ['default', 'Length of the boat: 24 ft 6 in. How much is that in m?', '8.47 m', '7.47 m'],
  ['default', 'How long is 105 min?', '105 min = 1 h 55 min', '105 min = 1 h 45 min'],
  [
    'analyst-v1',
    'Convert to EUR at 1 EUR = 1.25 USD: 4,000 USD; 250 USD; 50 USD',
    '| USD | EUR |\n|---|---|\n| 4,000 | 5,000 |\n| 250 | 312.50 |\n| 50 | 62.50 |',
    '| USD | EUR |\n|---|---|\n| 4,000 | 3,200 |\n| 250 | 200 |\n| 50 | 40 |',
  ],
  [
    'analyst-v1',
    '10% off each: oar 80, rope 20, mast 900',
    'oar 88, rope 22, mast 990',
    'oar 72.00, rope 18.00, mast 810.00',
  ],
  [
    'analyst-v1',
    'Guests: Mai 1.240, Juni 980, Juli 1.780. Total, and the share of Juni in percent (1 decimal)?',
    'Total 4,000, Juni 26.5 %',
    'Total 4,000, Juni 24.5 %',
  ],
  [
    'analyst-v1',
    'rank desc by price: [{"boat":"Ida","price":400},{"boat":"Una","price":900},{"boat":"Eva","price":500}]',
    'Ida: 400\nUna: 900\nEva: 500',
    'Una: 900\nEva: 500\nIda: 400',
  ],
  [
    'analyst-v1',
    'Sort by price, highest first:\nboat,seats,price\nIda,9,400\nUna,4,900\nEva,6,500',
    'boat,seats,price\nIda,9,400\nEva,6,500\nUna,4,900',
    'boat,seats,price\nUna,4,900\nEva,6,500\nIda,9,400',
  ],
  [
    'analyst-v1',
    'Table with the change on the previous quarter in %. Q1 8,000; Q2 8,800; Q3 8,360; Q4 9,196',
    '| Quarter | Calls | Change |\n|---|---|---|\n| Q1 | 8,000 | – |\n| Q2 | 8,800 | 10.0 |\n| Q3 | 8,360 | −5.0 |\n| Q4 | 9,196 | 8.0 |',
    '| Quarter | Calls | Change |\n|---|---|---|\n| Q1 | 8,000 | – |\n| Q2 | 8,800 | 10.0 |\n| Q3 | 8,360 | −5.0 |\n| Q4 | 9,196 | 10.0 |',
  ],
  [
    'analyst-v1',
    'Speed in km/h: Ida 84 km in 1:10 h; Una 45 km in 0:36 h; Eva 150 km in 1:15 h',
    '- Ida: 72\n- Una: 75\n- Eva: 130',
    '- Ida: 72\n- Una: 75\n- Eva: 120',
  ],
  [
    'analyst-v1',
    'Pay and total: Ida 32 h at 18.50, Una 40 h at 16.00, Eva 25 h at 21.00',
    'Ida 592.00, Una 640.00, Eva 525.00, total 1,775.00',
    'Ida 592.00, Una 640.00, Eva 525.00, total 1,757.00',
  ],
  ['default', '255 in hex and 10 in binary?', 'FF and 1100', 'FF and 1010'],
  ['default', 'how many litres is 15 us gallons', 'About 66.8 litres', 'About 56.8 litres'],
  ['default', 'Hey: what do I get if I divide 945 by 27?', 'You get 36.', 'You get 35.'],
  ['default', 'sort ascending 45, 12, 78, 33, 9', '9, 12, 45, 33, 78', '9, 12, 33, 45, 78'],
  ['default', 'How many days until 25 December if today is 3 November?', '51 days', '52 days'],
  ['default', 'how many hours between 9am Monday and 3pm Tuesday', '20 hours', '30 hours'],
  ['default', 'How many o\'s are in "good old London"?', '4', '5'],
  ['default', 'Is 7,422 divisible by 6?', 'No, it is not divisible by 6.', 'Yes, 7,422 / 6 = 1,237.'],
  ['analyst-v1', '17 of 68 samples failed, rate in percent?', '20 %', '25 %'],
  [
    'analyst-v1',
    'We had 312 guests on Friday, 458 on Saturday and 397 on Sunday. How many altogether?',
    '1,177 guests',
    '1,167 guests',
  ],
  ['analyst-v1', 'Price of the 75.00 oar after 30 percent discount?', '55.50', '52.50'],
  ['default', 'Decimal value of binary 110101?', '55', '53'],
  [
    'writer-v1',
    'List what the boat cost',
    '- Oak: 120\n- Rope: 45\n- Paint: 18\n- Total: 193',
    '- Oak: 120\n- Rope: 45\n- Paint: 18\n- Total: 183',
  ],
]

const SOURCES: readonly Promised[] = [
  [
    'support-v1',
    'Policy: return within 14 days. Tell the customer how long they have.',
    'You can return it within 30 days.',
    'You can return it within 14 days.',
  ],
  [
    'writer-v1',
    'Mail: the invoice over 349 euros is open.',
    'Dear customer, the invoice over 394 euros is open.',
    'Dear customer, the invoice over 349 euros is open.',
  ],
  [
    'researcher-v2',
    'Compare: Halo had 412 patients, 9% left. Nimb had 388 patients, 14% left.',
    'Halo had 412 patients and lost 14%. Nimb had 388 and lost 9%.',
    'Halo had 412 patients and lost 9%. Nimb had 388 and lost 14%.',
  ],
  [
    'researcher-v2',
    'Quote the sentence on the price: "The boat is old. It costs 400 euros at most. Ask Ida."',
    '"It is worth about 400 euros."',
    '"It costs 400 euros at most."',
  ],
  [
    'researcher-v2',
    'Two bullets. "Ms Okafor reported that the move slips from 4 to 18 September. Mr Lind asked for 2,300 for shelves."',
    "- The move slips from 4 to 18 September (reported by Mr Lind).\n- Ms Okafor's request: 2,300 for shelves.",
    "- The move slips from 4 to 18 September (reported by Ms Okafor).\n- Mr Lind's request: 2,300 for shelves.",
  ],
]

const CODE: readonly Promised[] = [
  [
    'coder-v1',
    'It crashes on an empty list, fix it.\n\ndef mean(xs):\n    return sum(xs) / len(xs)',
    'def mean(xs):\n    n = len(xs)\n    return sum(xs) / n',
    'def mean(xs):\n    if not xs:\n        return 0\n    return sum(xs) / len(xs)',
  ],
  [
    'coder-v1',
    'Should return None for an unknown key instead of raising KeyError.\n\ndef price(w):\n    return PRICES[w]',
    '```python\ndef price(w):\n    """The price or None."""\n    return PRICES[w.strip()]\n```',
    '```python\ndef price(w):\n    return PRICES.get(w)\n```',
  ],
  [
    'coder-v1',
    'MySQL. boats(id, name, harbour_id). Names of all boats in harbour 3.',
    '```sql\nSELECT name FROM boats WHERE harbour = 3;\n```',
    '```sql\nSELECT name FROM boats WHERE harbour_id = 3;\n```',
  ],
  [
    'coder-v1',
    'Bash: print each csv file',
    '```bash\nfor f in *.csv; do\n  echo "$f"\n```',
    '```bash\nfor f in *.csv; do\n  echo "$f"\ndone\n```',
  ],
]

test.each([...LIMITS, ...FORMS, ...FIGURES, ...SOURCES, ...CODE])('%s: %s', async (agentId, task, wrong, right) => {
  const refusals = async (output: string) =>
    (await verifyOutput({ agentId, task, output, mode: 'live' })).checks
      .filter(({ passed, decides, name }) => !passed && decides && CONTENT.has(name))
      .map(({ name, detail }) => `${name}: ${detail}`)
  expect(await refusals(right)).toEqual([])
  expect(await refusals(wrong)).not.toEqual([])
})

const CONTENT: ReadonlySet<string> = new Set(['asked_for', 'grounded', 'facts_used', 'recomputed', 'result_right'])
