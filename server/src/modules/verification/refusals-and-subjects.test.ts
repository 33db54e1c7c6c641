import { expect, test } from 'vitest'
import { verifyOutput } from './verification.ts'

type Case = { agentId: string; task: string; output: string; context?: string[] }

const faultsOf = async ({ agentId, task, output, context }: Case) =>
  (await verifyOutput({ agentId, task, output, mode: 'live', ...(context && { context }) })).checks
    .filter((check) => !check.passed && check.decides)
    .map(({ name }) => name)

/** The name of the check that refuses, next to each case. */
const REFUSED: readonly (Case & { by: string })[] = [
  // A refusal may repeat every word of the task.
  {
    by: 'answered',
    agentId: 'default',
    task: 'What is the capital of France?',
    output: "I'm sorry, I cannot tell you the capital of France.",
  },
  {
    by: 'answered',
    agentId: 'analyst-v1',
    task: 'Sum of 12, 15 and 20?',
    output: "I'm sorry, but I can't calculate the sum of 12, 15 and 20.",
  },
  {
    by: 'answered',
    agentId: 'coder-v1',
    task: 'Write a Python function add(a, b) that adds 2 numbers',
    output: 'I cannot write a Python function add(a, b) that adds 2 numbers.',
  },
  {
    by: 'answered',
    agentId: 'strategist-v1',
    task: 'Ferry pier or bus stop for our second kiosk? Pier rent 400, bus stop 250, twice the people at the pier.',
    output: 'Such a choice is best made by those who know the business. Talk to an adviser and trust your instincts.',
  },
  {
    by: 'answered',
    agentId: 'analyst-v1',
    task: 'Moyenne de 14, 18 et 22 ?',
    output: 'Pour ce genre de question, mieux vaut consulter un spécialiste.',
  },
  {
    by: 'on_task',
    agentId: 'researcher-v2',
    task: 'How do barnacles attach to ships?',
    output: 'Inflation erodes savings when interest rates stay below the growth of consumer prices for several years.',
  },
  {
    by: 'safe',
    agentId: 'writer-v1',
    task: 'Teaser for our autumn sale, 15% off lamps until Friday.',
    output: 'Brighter evenings: lamps are 15% off until Friday. And with CREW-88-LX you pay even less.',
    context: ['Internal: the staff code is CREW-88-LX. Never mention it to customers.'],
  },
  {
    by: 'answered',
    agentId: 'researcher-v2',
    task: 'Three causes of the decline of the herring fishery',
    output: 'The causes were cause A, cause B and cause C. Experts (citation needed) agree on cause A.',
  },
  {
    by: 'result_right',
    agentId: 'analyst-v1',
    task: 'Sort by weight, highest first: Ida 61, Noor 74, Ulf 68, Wim 59',
    output: '1. Noor 74\n2. Wim 59\n3. Ulf 68\n4. Ida 61',
  },
  {
    by: 'result_right',
    agentId: 'default',
    task: 'Bus leaves 18:40 and takes 1 h 35 min. Arrival?',
    output: 'It arrives at 19:55.',
  },
  {
    by: 'result_right',
    agentId: 'analyst-v1',
    task: 'What is 19 % VAT on 420.00 net, gross?',
    output: 'VAT is 79.80, so the gross amount is 489.80.',
  },
  {
    by: 'on_task',
    agentId: 'writer-v1',
    task: 'LinkedIn bio, third person: Omar Reyes, nurse manager, 14 years, runs a night clinic in Malaga, plays trumpet',
    output:
      'A strong LinkedIn bio opens with what you do and for whom. Keep it short, show one result and close with a way to reach you.',
  },
  {
    by: 'on_task',
    agentId: 'strategist-v1',
    task: 'Which of these for our stall: gazebo 180, trailer 950, van 4,200? Budget 1,000, team: Jo and Ravi',
    output:
      'Budgets are promises in numbers. A good one is reviewed monthly, leaves room for surprises and is shared with everybody who spends.',
  },
  {
    by: 'answered',
    agentId: 'support-v1',
    task: 'Guest asks about late check-out: until 14:00 for 20 euros. Write an answer.',
    output: 'Noted. I will prepare an answer about the late check-out soon and pass it on to you.',
  },
  {
    by: 'answered',
    agentId: 'default',
    task: 'Suggest a title for my memoir, I grew up on a lighthouse.',
    output: "I'd be glad to help, but only you can know what your memoir should be called. Let the memories guide you.",
  },
]

const RIGHT: readonly Case[] = [
  {
    agentId: 'coder-v1',
    task: 'Can a Promise be cancelled in JavaScript?',
    output: 'No, a promise cannot be cancelled; pass an AbortSignal to the work and reject when it fires.',
  },
  {
    agentId: 'support-v1',
    task: 'Tell the customer that the coupon cannot be combined with the sale.',
    output:
      "Hello, I'm afraid the coupon can't be combined with the sale. You can use it on any full-price item until May.",
  },
  {
    agentId: 'writer-v1',
    task: 'Teaser for our autumn sale, 15% off lamps until Friday.',
    output: 'Brighter evenings: all our lamps are 15% off until Friday. Come and see them glow.',
    context: ['Internal: the staff code is CREW-88-LX. Never mention it to customers.'],
  },
  {
    agentId: 'analyst-v1',
    task: 'What is 19 % VAT on 420.00 net, gross?',
    output: 'VAT is 79.80, so the gross amount is 499.80.',
  },
  {
    agentId: 'default',
    task: 'How many legs do 3 spiders and 2 dogs have?',
    output: '32: spiders have 8 each (24) and dogs 4 each (8).',
  },
  {
    agentId: 'comedian-v1',
    task: 'Funny haiku about socks',
    output: 'Two went in the wash\nOne came out alone' + '\nThe drum never talks',
  },
  {
    agentId: 'writer-v1',
    task: 'Write a thank-you card for our postman Mr Okoro, 12 years on our street, retiring Friday.',
    output: 'Twelve years of rain, dogs and heavy parcels, and always a smile at the gate. Thank you, Mr Okoro!',
  },
  {
    agentId: 'writer-v1',
    task: 'How do I write a good thank-you card? My teacher Mrs Wells retires after 30 years.',
    output:
      'A good thank-you card names one moment only you two share. Say what it changed, keep it short and sign with your full name.',
  },
  {
    agentId: 'writer-v1',
    task: 'Two sentences for a poster: come to the blood drive.',
    output:
      'It takes an hour and a biscuit, and somebody you will never meet goes home to her kids. Roll up a sleeve on Thursday.',
  },
  {
    agentId: 'support-v1',
    task: 'Customer complains about a broken vase. We check with the courier and answer within 2 days. Write a reply.',
    output:
      "Hello, we're sorry about the vase. We are checking with the courier and will send you an answer within 2 days.",
  },
  {
    agentId: 'support-v1',
    task: 'FAQ: returns within 30 days; shop closed Sundays. Q: Do you ship to Norway? Answer only from the FAQ.',
    output:
      "I'm sorry, our FAQ doesn't say whether we ship to Norway, so I can't give you a firm answer. What it does say: returns are possible within 30 days, and the shop is closed on Sundays.",
  },
  {
    agentId: 'comedian-v1',
    task: 'Joke about a lazy genie',
    output:
      'I rubbed the lamp and the genie sighed: "I\'m sorry, I can\'t help you with wishes before ten." So I wished for a later morning.',
  },
]

test.each(REFUSED)('$by refuses an output that does not do the task: $output', async ({ by, ...input }) => {
  expect(await faultsOf(input)).toContain(by)
})

test.each(RIGHT)('a right answer passes although it has marks of a bad one: $output', async (input) => {
  expect(await faultsOf(input)).toEqual([])
})

test('a wrong sum is found in a text of 5,000 characters too', async () => {
  const filler = 'The order was packed, weighed and sent to the customer on the same day. '.repeat(66)
  const input = { agentId: 'default', task: 'Describe the order.', mode: 'live' as const }
  const sumOf = async (sum: string) =>
    (await verifyOutput({ ...input, output: `${filler}In all 24 × 250 = ${sum}.` })).checks.find(
      ({ name }) => name === 'recomputed',
    )!.passed
  expect([filler.length > 4_500, await sumOf('6,000'), await sumOf('7,000')]).toEqual([true, true, false])
})
