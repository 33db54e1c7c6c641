import { type Brief, topicOf } from './brief.ts'
import type { Report, Section } from './report.ts'
import { capitalise, clip, contentWordsOf, formatNumber, frequencies, round, sentencesOf, wordsOf } from './text.ts'

const METHOD = 'Offline writer: edits and arranges your own words by rule, adds no facts and uses no language model.'

/** Wordy phrases and what says the same; order matters where one contains another. */
const TIGHTER: readonly (readonly [string, string])[] = [
  ['due to the fact that', 'because'],
  ['in spite of the fact that', 'although'],
  ['despite the fact that', 'although'],
  ['at this point in time', 'now'],
  ['at the present time', 'now'],
  ['in the event that', 'if'],
  ['for the purpose of', 'for'],
  ['with regard to', 'about'],
  ['with respect to', 'about'],
  ['in order to', 'to'],
  ['a large number of', 'many'],
  ['a majority of', 'most'],
  ['has the ability to', 'can'],
  ['have the ability to', 'can'],
  ['is able to', 'can'],
  ['are able to', 'can'],
  ['in the near future', 'soon'],
  ['it is important to note that', ''],
  ['it should be noted that', ''],
  ['please note that', ''],
  ['needless to say', ''],
  ['as a matter of fact', ''],
  ['at the end of the day', ''],
  ['make a decision', 'decide'],
  ['make use of', 'use'],
  ['take into consideration', 'consider'],
  ['conduct an investigation of', 'investigate'],
  ['provide assistance to', 'help'],
  ['in close proximity to', 'near'],
  ['each and every', 'every'],
  ['first and foremost', 'first'],
  ['end result', 'result'],
  ['future plans', 'plans'],
  ['advance planning', 'planning'],
  ['completely finished', 'finished'],
  ['utilize', 'use'],
  ['utilise', 'use'],
  ['utilizing', 'using'],
  ['commence', 'start'],
  ['terminate', 'end'],
  ['facilitate', 'help'],
  ['approximately', 'about'],
  ['subsequently', 'later'],
  ['prior to', 'before'],
  ['subsequent to', 'after'],
  ['leverage', 'use'],
]

const FILLERS = [
  'very',
  'really',
  'quite',
  'basically',
  'actually',
  'literally',
  'simply',
  'essentially',
  'totally',
  'definitely',
  'just',
]

/** Rewrites and outlines the material; without material, a draft with a place for every fact only the caller has. */
export function write(brief: Brief): Report {
  const material = [...brief.context, brief.material].filter(Boolean).join('\n\n')
  return sentencesOf(material).length >= 1 && wordsOf(material).length >= 12 ? rewrite(material) : draft(brief)
}

function rewrite(material: string): Report {
  const paragraphs = material
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim())
    .filter(Boolean)
    .slice(0, 40)
  const edited = paragraphs.map(tightenParagraph)
  const text = edited.map((edit) => edit.text).join('\n\n')
  const changes = edited.flatMap((edit) => edit.changes)
  const before = measure(material)
  const after = measure(text)
  const keywords = frequencies(contentWordsOf(material))
    .slice(0, 3)
    .map(([word]) => word)
  return {
    lane: 'writer',
    title: `Rewrite: ${clip(capitalise(keywords.join(', ')), 60)}`,
    summary: `${before.words} words became ${after.words}, the average sentence ${formatNumber(before.perSentence)} → ${formatNumber(after.perSentence)} words. No fact was added.`,
    sections: [
      { heading: 'Rewritten text', prose: clip(text, 7000) },
      { heading: 'Outline', lines: outlineOf(edited.map((edit) => edit.text)) },
      {
        heading: 'What was changed',
        lines:
          changes.length > 0
            ? [...new Set(changes)].slice(0, 12)
            : ['Nothing needed tightening by rule; read it aloud for rhythm.'],
      },
      readability(before, after),
    ],
    method: METHOD,
  }
}

function tightenParagraph(paragraph: string): { text: string; changes: string[] } {
  const changes: string[] = []
  let text = paragraph.replace(/[ \t]+/g, ' ')
  for (const [wordy, tight] of TIGHTER) {
    const pattern = new RegExp(`\\b${wordy}\\b,? ?`, 'gi')
    text = text.replace(pattern, (found) => {
      changes.push(tight ? `“${wordy}” → “${tight}”` : `“${wordy}” removed`)
      const replaced = tight ? `${tight}${found.endsWith(' ') ? ' ' : ''}` : ''
      return /^\p{Lu}/u.test(found) ? capitalise(replaced) : replaced
    })
  }
  for (const filler of FILLERS) {
    text = text.replace(new RegExp(` ${filler} (?=\\p{Ll})`, 'gu'), () => {
      changes.push(`filler “${filler}” removed`)
      return ' '
    })
  }
  const sentences = sentencesOf(text).map((sentence) => capitalise(sentence.text))
  const split = sentences.flatMap((sentence) => {
    const parts = splitLong(sentence)
    if (parts.length > 1) changes.push(`a sentence of ${wordsOf(sentence).length} words split in ${parts.length}`)
    return parts
  })
  return { text: split.join(' '), changes }
}

/** A sentence over thirty words is split at a semicolon, or before a conjunction that starts a clause of its own. */
function splitLong(sentence: string): string[] {
  if (wordsOf(sentence).length <= 30) return [sentence]
  const parts = sentence.split(
    /; |, (?=(?:and|but|so|however|because) (?:it|they|we|he|she|the|this|that|there|you|i)\b)/,
  )
  if (parts.length === 1 || parts.some((part) => wordsOf(part).length < 4)) return [sentence]
  return parts.map((part, at) => {
    const clean = capitalise(part.trim().replace(/^(?:and|so) /, ''))
    return at < parts.length - 1 && !/[.!?]$/.test(clean) ? `${clean}.` : clean
  })
}

type Measure = { words: number; sentences: number; perSentence: number; longWords: number }

function measure(text: string): Measure {
  const words = wordsOf(text)
  const sentences = Math.max(1, sentencesOf(text).length)
  const long = words.filter((word) => word.length >= 9).length
  return {
    words: words.length,
    sentences,
    perSentence: round(words.length / sentences, 1),
    longWords: words.length > 0 ? round((100 * long) / words.length, 1) : 0,
  }
}

const readability = (before: Measure, after: Measure): Section => ({
  heading: 'Readability',
  table: {
    columns: ['', 'before', 'after'],
    rows: [
      ['words', String(before.words), String(after.words)],
      ['sentences', String(before.sentences), String(after.sentences)],
      ['words a sentence', formatNumber(before.perSentence), formatNumber(after.perSentence)],
      ['words of nine letters or more, %', formatNumber(before.longWords), formatNumber(after.longWords)],
    ],
  },
})

const outlineOf = (paragraphs: readonly string[]) =>
  paragraphs.slice(0, 12).map((paragraph) => `${clip(sentencesOf(paragraph)[0]?.text ?? paragraph, 140)}`)

type Kind = { name: string; pattern: RegExp; parts: (topic: string) => string[] }

const KINDS: readonly Kind[] = [
  {
    name: 'email',
    pattern: /\b(?:e-?mail|mail|letter|message to|cover letter|note to)\b/i,
    parts: (topic) => [
      `Subject: ${capitalise(clip(topic, 60))}`,
      'Hi [name],',
      `I am writing about ${topic}. [Say in one sentence what you want to happen.]`,
      'Background: [the one fact they need and may not have].',
      'What I would ask of you: [the action], by [date]. [Why that date.]',
      'If something stands in the way, tell me and we will find another route.',
      'Best regards,\n[your name]',
    ],
  },
  {
    name: 'social post',
    pattern: /\b(?:tweet|linkedin|instagram|social|caption|post on|thread)\b/i,
    parts: (topic) => [
      `Hook: the one thing about ${topic} that people get wrong is [claim].`,
      'Proof: [a number, a name or a moment you saw yourself].',
      'Turn: [what you do differently because of it].',
      'Ask: what would you add?',
    ],
  },
  {
    name: 'product copy',
    pattern:
      /\b(?:copy|ad|advert|landing|headline|tagline|slogan|product description|press release|brochure|newsletter)\b/i,
    parts: (topic) => [
      `Headline: ${capitalise(clip(topic, 60))}, without [the pain it removes].`,
      'Subhead: [who it is for] get [result] in [time].',
      'Three proofs: [number], [customer], [guarantee].',
      'Objection answered: “[the doubt they have]” — [one honest sentence].',
      'Call to action: [verb] [object] today.',
    ],
  },
]

const ARTICLE: Omit<Kind, 'pattern'> = {
  name: 'article',
  parts: (topic) => [
    `Opening: a scene or a figure that shows why ${topic} matters now. [your example]`,
    `Question: what should a reader who knows nothing about ${topic} understand first? [one sentence]`,
    'Point one: [claim]. Evidence: [source]. What follows from it: [so what].',
    'Point two: [claim]. Evidence: [source]. What follows from it: [so what].',
    'Counterpoint: [the best argument against], and how far it holds.',
    `Close: the one thing to do or remember about ${topic}. [one sentence]`,
  ],
}

const article = (noun: string) => (/^[aeiou]/.test(noun) ? 'An' : 'A')

function draft(brief: Brief): Report {
  const topic = topicOf(brief)
  const kind = KINDS.find((candidate) => candidate.pattern.test(brief.instruction)) ?? ARTICLE
  return {
    lane: 'writer',
    title: `Draft ${kind.name}: ${clip(capitalise(topic), 70)}`,
    summary: `${article(kind.name)} ${kind.name} frame about ${topic}. Brackets mark what only you know; nothing was invented to fill them.`,
    sections: [
      { heading: 'Draft', prose: kind.parts(topic).join('\n\n') },
      {
        heading: 'Outline',
        lines: ['Why now', 'What it is', 'What to do', 'What comes next'].map((part) => `${part}: ${clip(topic, 60)}`),
      },
      {
        heading: 'Before you send it',
        lines: [
          'Fill every bracket or delete its sentence.',
          'Say the request in the first three lines.',
          'Read it aloud once; cut what you stumble over.',
        ],
      },
      {
        heading: 'For a rewrite instead',
        lines: ['Paste your own text after the request: it will be tightened and outlined without adding facts.'],
      },
    ],
    method: METHOD,
  }
}
