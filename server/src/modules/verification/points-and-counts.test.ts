import { expect, test } from 'vitest'
import { verifyOutput } from './verification.ts'

const refusals = async (agentId: string, task: string, output: string) =>
  (await verifyOutput({ agentId, task, output, mode: 'live' })).checks
    .filter(({ passed, decides }) => !passed && decides)
    .map(({ name, detail }) => `${name}: ${detail}`)

type Case = readonly [agentId: string, task: string, wrong: string, right: string]

const CASES: readonly Case[] = [
  [
    'writer-v1',
    'Notice for the laundry room. Must mention: opening 7-22, no dyeing, lint filter. Max 50 words.',
    'Dear neighbours, the laundry room is open from 7 to 22. Please clean the lint filter. Thank you!',
    'Dear neighbours, the laundry room is open from 7 am to 10 pm. No dyeing, please, and clean the lint filter!',
  ],
  [
    'support-v1',
    'Guest asks what the room has. Facts: balcony, kettle, hairdryer. List all of them.',
    'Hello, your room has a balcony and a kettle. We look forward to your stay.',
    'Hello, your room has a small balcony, a kettle and a hairdryer. We look forward to your stay.',
  ],
  [
    'writer-v1',
    'Aushang fürs Schwimmbad. Mitbringen: Badekappe, Handtuch, Vorhängeschloss. Bitte alles nennen.',
    'Liebe Gäste, bitte bringen Sie eine Badekappe und ein Handtuch mit. Wir freuen uns auf Sie!',
    'Liebe Gäste, bitte bringen Sie eine Badekappe, ein Handtuch und ein Schloss für den Spind mit.',
  ],
  [
    'comedian-v1',
    'Joke of two sentences about a robot vacuum. Call him "Dustin".',
    'Our robot got stuck under the sofa again. He says he is working from home.',
    'Dustin got stuck under the sofa again. He says he is working from home.',
  ],
  [
    'comedian-v1',
    '3 names for a quiz team of sailors, numbered list, none may contain "GPS"',
    '1. Knot Today\n2. NoGPSNeeded\n3. Sail Mates',
    '1. Knot Today\n2. Lost at Tea\n3. Sail Mates',
  ],
  [
    'writer-v1',
    'Two lines for the back of a boat poem that rhymes',
    'The boat is blue, the sea is wide and all of us are warm and dry inside.',
    'The boat is blue, the sea is wide,\nand all of us are dry inside.',
  ],
  [
    'analyst-v1',
    'Churn went from 4.0 % to 3.0 %. What is the relative change?',
    'The relative change is -33 %.',
    'Relative change: −25 %, i.e. 1 percentage point.',
  ],
  ['analyst-v1', 'Flour in 50 kg, bread out 44 kg. loss in %?', 'Loss: 6 kg, that is 13.6 %.', 'Loss: 6 kg = 12 %.'],
  ['analyst-v1', 'Members: 150 last year, 180 this year. Growth in %?', '16.7 %', '20 %'],
  ['analyst-v1', 'Members: this year 180, last year 150. Growth in %?', '16.7 %', '20 %'],
  ['default', 'convert 2.5 ha to m2', '2,500 m²', '25,000 m²'],
  ['default', '5 m^2 to sq ft', '43.8 sq ft', '53.8 sq ft'],
  ['default', '35 days after 10 March 2025?', '13 April 2025', '14 April 2025'],
  ['default', 'How many of these words start with a vowel: oar, mast, anchor, sail?', '3', 'Two: oar and anchor.'],
  ['default', 'How many of these words end in n: moon, sun, star, rain, snow?', '4', '3'],
  [
    'default',
    'How many of the following words have more than five letters: garden, sun, bottle, lamp, window?',
    '2',
    'Three: garden, bottle and window.',
  ],
  [
    'strategist-v1',
    'Pick tools for at most 900: saw 320, drill 210, vice 150, lathe 700. Show the sum.',
    '- Saw: 320\n- Drill: 210\n- Vice: 150\n\n**Sum: 700** – well within the budget.',
    '- Saw: 320\n- Drill: 210\n- Vice: 150\n\n**Sum: 680** – well within the budget.',
  ],
  [
    'strategist-v1',
    'priority = risk x exposure / cost. Pump: 6, 0.5, 2. Valve: 9, 0.4, 3. Motor: 4, 0.9, 1. Fan: 2, 0.5, 4. A table.',
    '| Part | Priority |\n|---|---|\n| Pump | 1.5 |\n| Valve | 1.2 |\n| Motor | 3.2 |\n| Fan | 0.25 |',
    '| Part | Priority |\n|---|---|\n| Pump | 1.5 |\n| Valve | 1.2 |\n| Motor | 3.6 |\n| Fan | 0.25 |',
  ],
  [
    'writer-v1',
    'Write a thank-you letter to Mrs Ferreira for the flowers.',
    'Dear Mrs Pereira, thank you so much for the lovely flowers. They brighten the whole office. Kind regards',
    'Dear Mrs Ferreira, thank you so much for the lovely flowers. They brighten the whole office. Kind regards',
  ],
]

test.each(CASES)('%s: %s', async (agentId, task, wrong, right) => {
  expect(await refusals(agentId, task, right)).toEqual([])
  expect(await refusals(agentId, task, wrong)).not.toEqual([])
})

const RIGHT: readonly (readonly [agentId: string, task: string, output: string])[] = [
  // A clause may be said in other words.
  [
    'writer-v1',
    'Notice for the kitchen. Must mention the fridge gets emptied every Friday and that labelled items are kept.',
    'Fridge friends! Every Friday we clear out anything without a label. Put your name on it and it stays.',
  ],
  // The figures of a length are none to mention.
  [
    'writer-v1',
    'Text for a wrap of wax, must contain the word "washable", 10 to 20 words.',
    'Warm the wrap with your hands and fold it round bread. Washable with cold water.',
  ],
  // Prose fills lines where it is printed.
  [
    'writer-v1',
    'Two-line description of our hostel for the booking site',
    'A quiet hostel behind the station with twenty beds, a big kitchen and a terrace. Breakfast is until noon.',
  ],
  // A remark about the length is no part of the text.
  [
    'writer-v1',
    'Shorten to at most 8 words: "All guests are kindly requested to leave their shoes at the entrance."',
    'Please leave your shoes at the entrance. (7 words)',
  ],
  // A product is no person.
  [
    'support-v1',
    '"Can I switch to Family now, my daughter got a phone?" Policy: any time, effective next billing day.',
    'Sure, Mrs Novak! It\'s done in two taps under "My tariff". It takes effect on your next billing day.',
  ],
  // A formula of three figures is not the half of one of them.
  [
    'strategist-v1',
    'Score = (value + urgency) / effort. North: 8, 4, 3. South: 6, 6, 4. East: 9, 1, 2. West: 5, 5, 4.',
    '| Site | Score |\n|---|---|\n| North | 4.0 |\n| South | 3.0 |\n| East | 5.0 |\n| West | 2.5 |',
  ],
]

test.each(RIGHT)('%s, right: %s', async (agentId, task, output) => {
  expect(await refusals(agentId, task, output)).toEqual([])
})
