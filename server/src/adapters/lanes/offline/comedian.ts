import { type Brief, extractTopic } from './brief.ts'
import type { Report } from './report.ts'
import { capitalise, clip, createPicker, splitSentences, trimEndOf } from './text.ts'

const METHOD =
  'Offline comedian: authored joke shapes around your topic, picked by a hash of the task, no language model and no refunds.'

type JokeTemplate = (topic: string, detail: string) => string

const ONE_LINERS: readonly JokeTemplate[] = [
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

const QUESTIONS: readonly JokeTemplate[] = [
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

const ROASTS: readonly JokeTemplate[] = [
  (topic) => `Add ${topic} to any room and the Wi-Fi gets slower out of sympathy.`,
  (topic, detail) => `${capitalise(topic)}: all the confidence of a weather forecast, and ${detail} to match.`,
  (topic) => `I would say ${topic} peaked early, but that suggests a peak.`,
  (topic, detail) => `${capitalise(topic)} brought ${detail} to the table. The table left.`,
  (topic) => `Calling ${topic} “a work in progress” is unfair to work, and to progress.`,
]

const KNOCK_KNOCKS: readonly JokeTemplate[] = [
  (topic) =>
    `Knock knock.\nWho is there?\nInterrupting ${topic}.\nInterrupting ${topic} wh—\nLet us take this offline.`,
  (topic, detail) =>
    `Knock knock.\nWho is there?\n${capitalise(detail)}.\n${capitalise(detail)} who?\n${capitalise(detail)} who was promised this would only take five minutes of ${topic}.`,
]

const LIMERICKS: readonly JokeTemplate[] = [
  (topic) =>
    `I dealt with ${topic} for most of a day,\nand begged, most politely, “Please, just go away.”\nThe answer came through:\n“I am living here too.”\nWe split up the rent now. I alone have to pay.`,
  (topic) =>
    `A person who thought about ${topic} all night\nsat up with a plan and a very bright light.\nBy morning the plan\nwas a drawing: a man\nasleep at his desk, and he got that part right.`,
  (topic) =>
    `I once gave a lecture on ${topic} in Rome,\nand half of the audience asked to go home.\nThe other half slept,\nexcept one, who wept,\nand asked for the slides and the name of the gnome.`,
]

/** Jokes about the topic, in the requested form and number. The same task always gets the same jokes. */
export function writeJokes(brief: Brief): Report {
  const topic = clip(extractJokeTopic(brief), 60)
  const pick = createPicker(brief.task)
  const count = Math.min(brief.format.items ?? (asksForOne(brief.instruction) ? 1 : 3), 10)
  const templates = pickWithoutRepeats(selectTemplates(brief.instruction), count, brief.task)
  const jokes = templates.map((template) =>
    template(topic, pick(['the spreadsheet', 'my toaster', 'the group chat', 'a very calm duck', 'the office plant'])),
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

const REQUEST_WORDS = new Set(
  'joke jokes funny write tell pun puns roast make give one-liner one-liners humor humour comedy limerick short stand-up knock hilarious laugh something anything clean'.split(
    ' ',
  ),
)

const asksForOne = (instruction: string) =>
  /\b(?:a|an|one|another)(?: [\w-]+){0,2} (?:joke|pun|riddle|one-liner|limerick)\b/i.test(instruction)

function extractJokeTopic(brief: Brief): string {
  const firstSentence = splitSentences(brief.instruction || brief.task)[0]?.text ?? ''
  const topic = extractTopic({ ...brief, instruction: firstSentence }, 60)
  const subjectText =
    /\b(?:joke|jokes|puns?|roast|one-liners?|limerick|bit|riddle|set)\b(?: me)?(?: (?:about|on|for|of|involving))?\s+(.{2,})$/i.exec(
      topic,
    )?.[1] ?? topic
  const words = subjectText
    .split(', ')[0]!
    .replace(/ in (?:\w+ ){0,2}(?:jokes?|roasts?|puns?|one-liners?|lines?)$/i, '')
    .split(' ')
    .filter((word) => !REQUEST_WORDS.has(word.toLowerCase()))
  const subject = words.join(' ').replace(/^(?:a|an|the|me|us|some|of|on|about)\s+/i, '')
  // The joke addresses the caller, so "my" becomes "your".
  return trimEndOf(subject.replace(/\b(?:my|our)\b/gi, 'your'), '.,;!?') || 'everyday life'
}

function selectTemplates(instruction: string): readonly JokeTemplate[] {
  if (/\broast/i.test(instruction)) return ROASTS
  if (/\blimerick/i.test(instruction)) return LIMERICKS
  if (/\bknock/i.test(instruction)) return KNOCK_KNOCKS
  if (/\b(?:riddle|question|why did|how many)\b/i.test(instruction)) return QUESTIONS
  return [...ONE_LINERS, ...QUESTIONS]
}

/** Picks `count` templates in a seeded order, without repeats until all were used. */
function pickWithoutRepeats(templates: readonly JokeTemplate[], count: number, seed: string): JokeTemplate[] {
  const pick = createPicker(`${seed}#order`)
  let remaining: JokeTemplate[] = []
  return Array.from({ length: count }, () => {
    if (remaining.length === 0) remaining = [...templates]
    const template = pick(remaining)
    remaining = remaining.filter((candidate) => candidate !== template)
    return template
  })
}
