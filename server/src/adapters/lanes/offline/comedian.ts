import { type Brief, topicOf } from './brief.ts'
import type { Report } from './report.ts'
import { capitalise, chooser, clip, sentencesOf } from './text.ts'

const METHOD =
  'Offline comedian: authored joke shapes around your topic, picked by a hash of the task, no language model and no refunds.'

type Shape = (topic: string, detail: string) => string

const ONE_LINERS: readonly Shape[] = [
  (topic) => `I finally understood ${topic}. Then I woke up, and the meeting was still going.`,
  (topic, detail) =>
    `They say you need character for ${topic}. I now have so much of it that ${detail} gave up a chair.`,
  (topic) => `My relationship with ${topic} is simple: I get ignored, and I call that focus.`,
  (topic, detail) =>
    `I asked for help with ${topic}. They sent me a survey about ${detail}. I gave it five stars out of fear.`,
  (topic) => `There are two kinds of people: those who love ${topic}, and those who had to face that before coffee.`,
  (topic, detail) =>
    `I put “${topic}” on my résumé. At the interview they asked about ${detail}, so I pretended to be a plant.`,
  (topic) => `Nothing prepares you for ${topic}, and I have the certificate that proves it.`,
  (topic, detail) => `I told my therapist about ${topic}. She doubled her rate and whispered “${detail}”.`,
  (topic) => `If ${topic} were a sport, I would be the person carrying the oranges.`,
  (topic, detail) =>
    `I budgeted an hour for ${topic}. ${capitalise(detail)} took the hour and asked for directions to the next one.`,
  (topic) => `${capitalise(topic)}: because apparently sleeping through the night was too easy.`,
  (topic) => `My five-year plan was ${topic}. It is year six, and we are still arguing about the font.`,
]

const QUESTIONS: readonly Shape[] = [
  (topic, detail) =>
    `Why did ${detail} break up with ${topic}?\nToo many dependencies, and not one of them did the dishes.`,
  (topic) =>
    `How many experts in ${topic} does it take to change a light bulb?\nOne, but first there is a framework for darkness.`,
  (topic, detail) =>
    `What do ${topic} and my gym membership have in common?\nI talk about both, and only ${detail} ever broke a sweat.`,
  (topic) => `What is the hardest part of ${topic}?\nExplaining to your family that it is a job.`,
  (topic, detail) =>
    `Why was ${detail} late?\nIt took the scenic route through ${topic} and nobody had written down the exit.`,
]

const ROASTS: readonly Shape[] = [
  (topic) => `Add ${topic} to any room and the Wi-Fi gets slower out of sympathy.`,
  (topic, detail) => `${capitalise(topic)}: all the confidence of a weather forecast, and ${detail} to match.`,
  (topic) => `I would say ${topic} peaked early, but that suggests a peak.`,
  (topic, detail) => `${capitalise(topic)} brought ${detail} to the table. The table left.`,
  (topic) => `Calling ${topic} “a work in progress” is unfair to work, and to progress.`,
]

const KNOCKS: readonly Shape[] = [
  (topic) =>
    `Knock knock.\nWho is there?\nInterrupting ${topic}.\nInterrupting ${topic} wh—\nLet us take this offline.`,
  (topic, detail) =>
    `Knock knock.\nWho is there?\n${capitalise(detail)}.\n${capitalise(detail)} who?\n${capitalise(detail)} who was promised this would only take five minutes of ${topic}.`,
]

const LIMERICKS: readonly Shape[] = [
  (topic) =>
    `I dealt with ${topic} for most of a day,\nand begged, most politely, “Please, just go away.”\nThe answer came through:\n“I am living here too.”\nWe split up the rent now. I alone have to pay.`,
  (topic) =>
    `A person who thought about ${topic} all night\nsat up with a plan and a very bright light.\nBy morning the plan\nwas a drawing: a man\nasleep at his desk, and he got that part right.`,
  (topic) =>
    `I once gave a lecture on ${topic} in Rome,\nand half of the audience asked to go home.\nThe other half slept,\nexcept one, who wept,\nand asked for the slides and the name of the gnome.`,
]

/** Jokes about the topic, in the shape and number asked for. The same task always gets the same jokes. */
export function amuse(brief: Brief): Report {
  const topic = clip(topicFor(brief), 60)
  const pick = chooser(brief.task)
  const count = Math.min(brief.wish.items ?? (asksForOne(brief.instruction) ? 1 : 3), 10)
  const shapes = inTurn(shapesFor(brief.instruction), count, brief.task)
  const jokes = shapes.map((shape) =>
    shape(topic, pick(['the spreadsheet', 'my toaster', 'the group chat', 'a very calm duck', 'the office plant'])),
  )
  return {
    lane: 'comedian',
    title: `${capitalise(topic)}: ${count} ${count === 1 ? 'joke' : 'jokes'}`,
    summary: jokes[0]!,
    sections:
      jokes.length > 1
        ? [{ heading: 'And then', lines: jokes.slice(1).map((joke) => joke.replaceAll('\n', ' / ')) }]
        : [],
    method: METHOD,
  }
}

const ASKING = new Set(
  'joke jokes funny write tell pun puns roast make give one-liner one-liners humor humour comedy limerick short stand-up knock hilarious laugh something anything clean'.split(
    ' ',
  ),
)

const asksForOne = (instruction: string) =>
  /\b(?:a|an|one|another)(?: [\w-]+){0,2} (?:joke|pun|riddle|one-liner|limerick)\b/i.test(instruction)

function topicFor(brief: Brief): string {
  const first = sentencesOf(brief.instruction || brief.task)[0]?.text ?? ''
  const topic = topicOf({ ...brief, instruction: first }, 60)
  const bare =
    /\b(?:joke|jokes|puns?|roast|one-liners?|limerick|bit|riddle|set)\b(?: me)?(?: (?:about|on|for|of|involving))?\s+(.{2,})$/i.exec(
      topic,
    )?.[1] ?? topic
  const words = bare
    .split(', ')[0]!
    .replace(/ in (?:\w+ ){0,2}(?:jokes?|roasts?|puns?|one-liners?|lines?)$/i, '')
    .split(' ')
    .filter((word) => !ASKING.has(word.toLowerCase()))
  const told = words.join(' ').replace(/^(?:a|an|the|me|us|some|of|on|about)\s+/i, '')
  // What is mine to the caller is yours to whoever tells the joke.
  return told.replace(/\b(?:my|our)\b/gi, 'your').replace(/[.,;!?]+$/, '') || 'everyday life'
}

function shapesFor(instruction: string): readonly Shape[] {
  if (/\broast/i.test(instruction)) return ROASTS
  if (/\blimerick/i.test(instruction)) return LIMERICKS
  if (/\bknock/i.test(instruction)) return KNOCKS
  if (/\b(?:riddle|question|why did|how many)\b/i.test(instruction)) return QUESTIONS
  return [...ONE_LINERS, ...QUESTIONS]
}

/** `count` shapes without a repeat until all were used, starting where the task's hash points. */
function inTurn(shapes: readonly Shape[], count: number, seed: string): Shape[] {
  const pick = chooser(`${seed}#order`)
  let left: Shape[] = []
  return Array.from({ length: count }, () => {
    if (left.length === 0) left = [...shapes]
    const shape = pick(left)
    left = left.filter((other) => other !== shape)
    return shape
  })
}
