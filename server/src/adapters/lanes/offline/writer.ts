import { spendSteps } from '../../../platform/step-budget.ts'
import { type Brief, extractTopic } from './brief.ts'
import type { Report, Section } from './report.ts'
import { correctSpelling } from './spelling.ts'
import {
  capitalise,
  clip,
  countFrequencies,
  extractContentWords,
  formatCount,
  formatNumber,
  round,
  splitSentences,
  splitWords,
  trimEndOf,
} from './text.ts'

const METHOD = 'Offline writer: edits and arranges your own words by rule, adds no facts and uses no language model.'

/** Wordy phrases and their shorter form; order matters where one contains another. */
const WORDY_PHRASES: readonly (readonly [string, string])[] = [
  ['we hereby inform you that', ''],
  ['we would like to inform you that', ''],
  ['this is to inform you that', ''],
  ['i am writing to inform you that', ''],
  ['please be advised that', ''],
  ['please be informed that', ''],
  ['hereby', ''],
  ['until further notice', 'for now'],
  ['with immediate effect', 'from now on'],
  ['are required to', 'must'],
  ['is required to', 'must'],
  ['has made a decision to', 'has decided to'],
  ['have made a decision to', 'have decided to'],
  ['in accordance with', 'under'],
  ['on a daily basis', 'daily'],
  ['on a regular basis', 'regularly'],
  ['at your earliest convenience', 'soon'],
  ['please do not hesitate to', 'please'],
  ['do not hesitate to', 'please'],
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

/** Rewrites and outlines the material; without material, drafts a text with placeholders for the caller's facts. */
export function writeText(brief: Brief): Report {
  if (/\btranslat(?:e|ion)\b/i.test(brief.instruction)) return reportNotTranslated(brief)
  const items = readNewsletterItems(brief)
  if (items.length >= 2) return draftNewsletter(items)
  const { material } = brief
  const minWords = asksForEdit(brief.instruction) && brief.material ? 2 : 12
  return splitSentences(material).length >= 1 && splitWords(material).length >= minWords
    ? rewriteText(brief, material)
    : draftText(brief)
}

/** This lane cannot translate, so it returns the text unchanged and says so. */
function reportNotTranslated(brief: Brief): Report {
  const text = brief.material || brief.task
  return {
    lane: 'writer',
    title: 'Not translated',
    summary:
      'This lane works by rule and knows no second language, so it does not translate; a lane with a model does.',
    sections: [
      {
        heading: 'What a translator will want to know',
        lines: [
          `Length: ${formatCount(splitWords(text).length, 'word')} in ${formatCount(Math.max(1, splitSentences(text).length), 'sentence')}.`,
          'Who reads it, and are they addressed formally or not?',
          'Which names and terms stay as they are?',
        ],
      },
      { heading: 'The text, unchanged', prose: clip(text, 7000) },
    ],
    method: METHOD,
  }
}

const asksForEdit = (instruction: string) =>
  /\b(?:proofread|rewrite|rephrase|paraphrase|shorten|simplify|polish|edit|correct|improve|tighten|shorter|clearer|(?:in)?formal)\b/i.test(
    instruction,
  )

/** Notes for a newsletter: short pieces, one per line or separated by commas. */
function readNewsletterItems(brief: Brief): string[] {
  if (!/\bnewsletter\b/i.test(brief.instruction)) return []
  const pieces = brief.material
    .split(/\n|[,;] /)
    .map((piece) => trimEndOf(piece.replace(/^[\s\-*•\d.)]+/, ''), '.', true))
    .filter(Boolean)
  return pieces.every((piece) => splitWords(piece).length <= 14) ? pieces.slice(0, 8) : []
}

function draftNewsletter(items: readonly string[]): Report {
  return {
    lane: 'writer',
    title: `Newsletter: ${clip(items.map((item) => capitalise(item)).join(', '), 70)}`,
    summary: `A newsletter of ${items.length} pieces from your notes. Brackets mark what only you know; nothing was invented to fill them.`,
    sections: [
      {
        heading: 'Draft',
        prose: [
          `Subject: ${capitalise(items[0]!)}, and ${items.length - 1} more ${items.length === 2 ? 'piece' : 'pieces'} of news`,
          'Hello [name],',
          `In this issue: ${items.join('; ')}.`,
          ...items.map((item) => `**${capitalise(item)}**\n[What it means for the reader, with place and time.]`),
          'Until next time,\n[your name]',
        ].join('\n\n'),
      },
    ],
    method: METHOD,
  }
}

function rewriteText(brief: Brief, material: string): Report {
  const paragraphs = material
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim())
    .filter(Boolean)
    .slice(0, 40)
  const editedParagraphs = paragraphs.map(tightenParagraph)
  const text = editedParagraphs.map((edit) => edit.text).join('\n\n')
  const changes = editedParagraphs.flatMap((edit) => edit.changes)
  const before = measureText(material)
  const after = measureText(text)
  const wantsPlainLanguage =
    /\b(?:simpl\w{1,8}|plain(?:er)?|year[- ]old|child|layman|beginners?|understand\w{0,5})\b/i.test(brief.instruction)
  const keywords = countFrequencies(extractContentWords(text))
    .slice(0, 3)
    .map(([word]) => word)
  return {
    lane: 'writer',
    title: `Rewrite: ${clip(capitalise(keywords.join(', ')), 60)}`,
    summary: `${before.words} words became ${after.words}, the average sentence ${formatNumber(before.perSentence)} → ${formatNumber(after.perSentence)} words. No fact was added.`,
    sections: [
      { heading: 'Rewritten text', prose: clip(text, 7000) },
      ...(editedParagraphs.length > 1
        ? [{ heading: 'Outline', lines: buildOutline(editedParagraphs.map((edit) => edit.text)) }]
        : []),
      {
        heading: 'What was changed',
        lines:
          changes.length > 0
            ? [...new Set(changes)].slice(0, 12)
            : ['Nothing needed tightening by rule; read it aloud for rhythm.'],
      },
      ...(wantsPlainLanguage ? [{ heading: 'Words to explain or replace', lines: findLongWords(text) }] : []),
      buildReadability(before, after),
    ],
    method: METHOD,
  }
}

/** Long words that a general reader may not understand. */
const findLongWords = (text: string) =>
  countFrequencies(extractContentWords(text).filter((word) => word.length >= 8))
    .slice(0, 10)
    .map(([word]) => word)

function tightenParagraph(paragraph: string): { text: string; changes: string[] } {
  spendSteps(paragraph.length * (WORDY_PHRASES.length + FILLERS.length))
  const spelling = correctSpelling(paragraph.replace(/[ \t]+/g, ' '))
  const changes = spelling.changes
  let text = spelling.text
  for (const [phrase, shorter] of WORDY_PHRASES) {
    const pattern = new RegExp(`\\b${phrase}\\b,? ?`, 'gi')
    text = text.replace(pattern, (match) => {
      changes.push(shorter ? `“${phrase}” → “${shorter}”` : `“${phrase}” removed`)
      const replacement = shorter ? `${shorter}${match.endsWith(' ') ? ' ' : ''}` : ''
      return /^\p{Lu}/u.test(match) ? capitalise(replacement) : replacement
    })
  }
  for (const filler of FILLERS) {
    text = text.replace(new RegExp(` ${filler} (?=\\p{Ll})`, 'gu'), () => {
      changes.push(`filler “${filler}” removed`)
      return ' '
    })
  }
  const sentences = splitSentences(text).map((sentence) => capitalise(sentence.text))
  const shortSentences = sentences.flatMap((sentence) => {
    const parts = splitLongSentence(sentence)
    if (parts.length > 1) changes.push(`a sentence of ${splitWords(sentence).length} words split in ${parts.length}`)
    return parts
  })
  return { text: shortSentences.join(' '), changes }
}

/** Splits a sentence over thirty words at a semicolon, or before a conjunction that starts a main clause. */
function splitLongSentence(sentence: string): string[] {
  if (splitWords(sentence).length <= 30) return [sentence]
  const parts = sentence.split(
    /; |, (?=(?:and|but|so|however|because) (?:it|they|we|he|she|the|this|that|there|you|i)\b)/,
  )
  if (parts.length === 1 || parts.some((part) => splitWords(part).length < 4)) return [sentence]
  return parts.map((part, i) => {
    const newSentence = capitalise(part.trim().replace(/^(?:and|so) /, ''))
    return i < parts.length - 1 && !/[.!?]$/.test(newSentence) ? `${newSentence}.` : newSentence
  })
}

type TextMeasure = { words: number; sentences: number; perSentence: number; longWords: number }

function measureText(text: string): TextMeasure {
  const words = splitWords(text)
  const sentences = Math.max(1, splitSentences(text).length)
  const longCount = words.filter((word) => word.length >= 9).length
  return {
    words: words.length,
    sentences,
    perSentence: round(words.length / sentences, 1),
    longWords: words.length > 0 ? round((100 * longCount) / words.length, 1) : 0,
  }
}

const buildReadability = (before: TextMeasure, after: TextMeasure): Section => ({
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

const buildOutline = (paragraphs: readonly string[]) =>
  paragraphs.slice(0, 12).map((paragraph) => `${clip(splitSentences(paragraph)[0]?.text ?? paragraph, 140)}`)

/** A template for one kind of text. `subject` is its topic in the caller's words. */
type TextKind = {
  name: string
  pattern: RegExp
  parts: (subject: string, request: string, items: number | undefined) => string[]
}

/** The purpose of an email decides its body; greeting and ending are the same for all. */
const EMAIL_PURPOSES: readonly { pattern: RegExp; subject: string; body: readonly string[] }[] = [
  {
    pattern: /\bdeclin\w{1,4}|turn(?:ing)? down|say(?:ing)? no\b|refus\w{1,4}/i,
    subject: 'Thank you, and my regrets',
    body: [
      'Thank you very much for [the invitation or offer]. It means a lot that you thought of me.',
      'I am sorry to say that I cannot accept. [One honest reason, or none: a short no is kinder than a long excuse.]',
      'I wish you all the best for it and hope we find another occasion soon.',
    ],
  },
  {
    pattern: /\bapolog\w{1,4}|say(?:ing)? sorry\b/i,
    subject: 'My apology',
    body: [
      'I am sorry for {subject}. That was my mistake, and I understand what it cost you: [the effect].',
      'This is what I have done about it: [the remedy]. This is what will keep it from happening again: [the change].',
      'If there is something else that would put it right, please tell me.',
    ],
  },
  {
    pattern: /\bthank\w{0,4}\b/i,
    subject: 'Thank you',
    body: [
      'Thank you for [what they did]. It made a difference: [what changed because of it].',
      'I especially valued [one detail that shows you noticed].',
      'If I can return the favour, I would be glad to.',
    ],
  },
  {
    pattern: /\bremind\w{0,4}|follow(?:ing)?[- ]?up|chas(?:e|ing)\b/i,
    subject: 'A short reminder',
    body: [
      'I am following up on [what you asked for, and when]. I know things get buried, so here it is again in one line: [the request].',
      'Could you let me have it by [date]? After that [what is held up].',
      'If it is no longer with you, a name is all I need.',
    ],
  },
  {
    pattern: /\binvit(?:e|ing|ation to)\b/i,
    subject: 'You are invited',
    body: [
      'I would like to invite you to [the occasion], on [date] at [time], at [place].',
      'It is [what will happen, in one sentence]. [Who else will be there.]',
      'Please tell me by [date] whether you can come.',
    ],
  },
  {
    pattern: /\bresign\w{0,6}\b/i,
    subject: 'My resignation',
    body: [
      'With this letter I resign from my position as [role]. My last working day will be [date], in line with my notice period.',
      'Thank you for [what you are grateful for].',
      'I will hand over [your work] in good order and am glad to help whoever takes it on.',
    ],
  },
  {
    pattern: /\bcomplain\w{0,4}|complaint\b/i,
    subject: 'A complaint, and what would resolve it',
    body: [
      'On [date] I [bought, booked or was promised what]. What I got was [what went wrong].',
      'I have already [what you tried]. I attach [the evidence].',
      'To resolve this I ask for [refund, repair or replacement] by [date].',
    ],
  },
  {
    pattern: /\bcover letter|appl(?:y|ying|ication)\b/i,
    subject: 'My application',
    body: [
      'I am applying for {subject}, advertised [where].',
      'What I bring: [your strongest fact, with a number or a name]. In [place] I [what you did], and the result was [what changed].',
      'Why you: [one thing about them that is true of no other employer].',
      'I would be glad to show you more in a conversation; I can start on [date].',
    ],
  },
]

const TEXT_KINDS: readonly TextKind[] = [
  {
    name: 'email',
    pattern: /\b(?:e-?mail|mail|letter|message to|cover letter|note to)\b/i,
    parts: (subject, request) => {
      const purpose = EMAIL_PURPOSES.find(({ pattern }) => pattern.test(request))
      return [
        `Subject: ${purpose && !/\babout\b/i.test(request) ? purpose.subject : capitalise(clip(subject, 60))}`,
        'Hi [name],',
        ...(purpose?.body.map((line) => line.replace('{subject}', subject)) ?? [
          `I am writing about ${subject}. [Say in one sentence what you want to happen.]`,
          'Background: [the one fact they need and may not have].',
          'What I would ask of you: [the action], by [date]. [Why that date.]',
          'If something stands in the way, tell me and we will find another route.',
        ]),
        'Best regards,\n[your name]',
      ]
    },
  },
  {
    name: 'announcement',
    pattern: /\b(?:announce\w{0,5}|notice|press release|memo)\b/i,
    parts: (subject) => [
      `**${capitalise(clip(subject, 80))}**`,
      `${capitalise(subject)}.`,
      'Why: [the reason, in one sentence].',
      'What changes for you: [what readers must do or can no longer do], from [date].',
      'Questions: [name, address].',
    ],
  },
  {
    name: 'tagline',
    pattern: /\b(?:taglines?|slogans?|mottos?|headlines?)\b/i,
    parts: (subject, _request, items) => {
      const noun = subject.replace(/^(?:an?|the|my|our) /i, '')
      return [
        [
          `The ${noun} you can count on.`,
          `[Your name]: the ${noun} with [the one thing you do better].`,
          `For everyone who needs ${subject} and is tired of [the pain].`,
          `[What your customers say], at the ${noun}.`,
        ]
          .slice(0, items)
          .map((line, i) => `${i + 1}. ${line}`)
          .join('\n'),
        'Say each aloud to somebody who does not know you; keep the one they can repeat an hour later.',
      ]
    },
  },
  {
    name: 'poem',
    pattern: /\b(?:poem|haiku|sonnet|verses?|lyrics|rhyme)\b/i,
    parts: (subject, request) =>
      /\bhaiku\b/i.test(request)
        ? [
            `Line 1, five syllables: one thing you see or hear of ${subject}.`,
            'Line 2, seven syllables: what it does, or what it touches.',
            'Line 3, five syllables: a turn, so that the first line means more than it did.',
          ]
        : [
            `First lines: one picture of ${subject}, for the eye or the ear.`,
            'Middle: what it reminds you of, and whom.',
            'Turn: what you did not expect to say.',
            'Last line: the first picture again, changed.',
          ],
  },
  {
    name: 'social post',
    pattern: /\b(?:tweet|linkedin|instagram|social|caption|post on|thread)\b/i,
    parts: (subject) => [
      `Hook: the one thing about ${subject} that people get wrong is [claim].`,
      'Proof: [a number, a name or a moment you saw yourself].',
      'Turn: [what you do differently because of it].',
      'Ask: what would you add?',
    ],
  },
  {
    name: 'product copy',
    pattern: /\b(?:copy|ad|advert|landing|product description|brochure|newsletter)\b/i,
    parts: (subject) => [
      `Headline: ${capitalise(clip(subject, 60))}, without [the pain it removes].`,
      `What it is: ${subject}, made of [material or method], for [who it is for].`,
      'What it does for them: [result], in [time or effort].',
      'Three proofs: [number], [customer], [guarantee].',
      'Objection answered: “[the doubt they have]” — [one honest sentence].',
      'Call to action: [verb] [object] today.',
    ],
  },
]

const ARTICLE: Omit<TextKind, 'pattern'> = {
  name: 'article',
  parts: (subject) => [
    `Opening: a scene or a figure that brings ${subject} to life. [your example]`,
    `Question: what should a reader who knows nothing about ${subject} understand first? [one sentence]`,
    'Point one: [claim]. Evidence: [source]. What follows from it: [so what].',
    'Point two: [claim]. Evidence: [source]. What follows from it: [so what].',
    'Counterpoint: [the best argument against], and how far it holds.',
    `Close: the one thing to do or remember about ${subject}. [one sentence]`,
  ],
}

const indefiniteArticle = (noun: string) => (/^[aeiou]/.test(noun) ? 'an' : 'a')

const TEXT_FORM =
  /^(?:(?:a|an|the|some|\d+|apology|thank[- ]you|reminder|follow[- ]up|complaint|short|long|brief|polite|formal|informal|friendly|professional|warm|catchy|new|good|compelling) )*(?:cover letter|product description|press release|blog post|social post|linkedin post|landing page|e-?mail|letter|message|note|post|article|essay|announcement|notice|memo|taglines?|slogans?|mottos?|headlines?|newsletter|description|caption|tweet|copy|text|poem|haiku|sonnet|ad)\b(?: (?:to|on) (?:the |my |our |an? )?[\w-]+(?= (?:about|that|for|on|declin|ask|thank)))?(?: for the intranet(?= that))?\s*(?:about|for|on|that|of|to|:)?\s*/i

/** The topic without the kind of text: "an email about the heating" gives "the heating". */
function extractSubject(brief: Brief): string {
  const topic = extractTopic(brief)
  return topic.replace(TEXT_FORM, '') || topic
}

function draftText(brief: Brief): Report {
  const subject = extractSubject(brief)
  const kind = TEXT_KINDS.find((candidate) => candidate.pattern.test(brief.instruction)) ?? ARTICLE
  return {
    lane: 'writer',
    title: `Draft ${kind.name}: ${clip(capitalise(subject), 70)}`,
    summary: `A frame for ${indefiniteArticle(kind.name)} ${kind.name}: ${subject}. Brackets mark what only you know; nothing was invented to fill them.`,
    sections: [
      { heading: 'Draft', prose: kind.parts(subject, brief.instruction, brief.format.items).join('\n\n') },
      {
        heading: 'Before you send it',
        lines: [
          'Fill every bracket or delete its sentence.',
          'Say what matters in the first three lines.',
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
