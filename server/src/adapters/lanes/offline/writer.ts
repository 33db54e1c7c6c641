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

/** Rewrites the material, or writes a text from the facts that the task gives. What it does not give is left out. */
export function writeText(brief: Brief): Report {
  if (/\btranslat(?:e|ion)\b/i.test(brief.instruction)) return reportNotTranslated(brief)
  const items = readNewsletterItems(brief)
  if (items.length >= 2) return draftNewsletter(items)
  const { material } = brief
  if (asksForDraft(brief)) return draftText(brief)
  const minWords = asksForEdit(brief.instruction) && material ? 2 : 12
  return splitSentences(material).length >= 1 && splitWords(material).length >= minWords
    ? rewriteText(brief, material)
    : draftText(brief)
}

/** A text is to be written from facts, not changed: "write an announcement: …", "draft a reply from these notes". */
const asksForDraft = (brief: Brief) =>
  !asksForEdit(brief.instruction) &&
  brief.fences.length === 0 &&
  /^\W{0,3}(?:please |can you |could you |kindly )*(?:write|draft|compose|create|prepare|produce|make|announce)\b/i.test(
    brief.instruction,
  ) &&
  !/\b(?:summar\w{1,6}|outline|abstract)\b/i.test(brief.instruction)

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
    summary: [
      `Subject: ${capitalise(items[0]!)}, and ${items.length - 1} more ${items.length === 2 ? 'piece' : 'pieces'} of news`,
      'Hello,',
      `In this issue: ${items.join('; ')}.`,
      ...items.map((item) => `**${capitalise(item)}**`),
      'Until next time.',
    ].join('\n\n'),
    sections: [
      {
        heading: 'Not given, so left out',
        lines: ['What each piece means for the reader, with place and time; your name.'],
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
    summary: clip(text, 7000),
    sections: [
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

/** What a text is made of: all of it is the caller's. */
type TextFacts = {
  /** The topic in the caller's words, at full length. */
  subject: string
  /** Further sentences and lines of the task, in its words. */
  facts: readonly string[]
  recipient: string | undefined
  sender: string | undefined
  request: string
  items: number | undefined
}

type TextKind = { name: string; pattern: RegExp; write: (facts: TextFacts) => string[]; missing: string }

/** The purpose of an email decides its body; greeting and ending are the same for all. */
const EMAIL_PURPOSES: readonly { pattern: RegExp; subject: string; body: readonly string[] }[] = [
  {
    pattern: /\bdeclin\w{1,4}|turn(?:ing)? down|say(?:ing)? no\b|refus\w{1,4}/i,
    subject: 'Thank you, and my regrets',
    body: [
      'Thank you very much. It means a lot that you thought of me.',
      'I am sorry to say that I cannot accept: {subject}.',
      'I wish you all the best for it and hope we find another occasion soon.',
    ],
  },
  {
    pattern: /\bapolog\w{1,4}|say(?:ing)? sorry\b/i,
    subject: 'My apology',
    body: [
      'I am sorry: {subject}. I understand that it cost you time and trouble.',
      'If there is something that would put it right, please tell me.',
    ],
  },
  {
    pattern: /\bthank\w{0,4}\b/i,
    subject: 'Thank you',
    body: ['Thank you: {subject}. It made a difference.', 'If I can return the favour, I would be glad to.'],
  },
  {
    pattern: /\bremind\w{0,4}|follow(?:ing)?[- ]?up|chas(?:e|ing)\b/i,
    subject: 'A short reminder',
    body: [
      'I am following up: {subject}. I know that things get buried.',
      'If it is no longer with you, a name is all I need.',
    ],
  },
  {
    pattern: /\binvit(?:e|ing|ation)\b/i,
    subject: 'You are invited',
    body: ['I would like to invite you: {subject}.', 'Please tell me whether you can come.'],
  },
  {
    pattern: /\bresign\w{0,6}\b/i,
    subject: 'My resignation',
    body: [
      'With this letter I resign: {subject}.',
      'I will hand over my work in good order and am glad to help whoever takes it on.',
    ],
  },
  {
    pattern: /\bcomplain\w{0,4}|complaint\b/i,
    subject: 'A complaint, and what would resolve it',
    body: ['I am writing to complain: {subject}.', 'Please tell me how you will resolve it.'],
  },
  {
    pattern: /\bcover letter|appl(?:y|ying|ication)\b/i,
    subject: 'My application',
    body: ['I am applying: {subject}.', 'I would be glad to tell you more in a conversation.'],
  },
]

const withSubject = (line: string, subject: string) => line.replace('{subject}', () => subject)

const TEXT_KINDS: readonly TextKind[] = [
  {
    name: 'email',
    pattern: /\b(?:e-?mail|mail|letter|message to|cover letter|note to|invitation)\b/i,
    missing: 'What should happen next and by when; names, where the task has none.',
    write: ({ subject, facts, recipient, sender, request }) => {
      const purpose = EMAIL_PURPOSES.find(({ pattern }) => pattern.test(request))
      const [opening, ...closing] = purpose?.body ?? [
        'I am writing about {subject}.',
        'If something stands in the way, tell me and we will find another route.',
      ]
      return [
        `Subject: ${purpose && !/\babout\b/i.test(request) ? purpose.subject : capitalise(clip(subject, 70))}`,
        recipient ? `Dear ${recipient},` : 'Hello,',
        withSubject(opening!, subject),
        ...joinFacts(facts),
        ...closing.map((line) => withSubject(line, subject)),
        `Best regards${sender ? `,\n${sender}` : ''}`,
      ]
    },
  },
  {
    name: 'announcement',
    pattern: /\b(?:announce\w{0,5}|notice|press release|memo)\b/i,
    missing: 'The reason, what readers have to do, and whom they can ask, where the task does not say.',
    write: ({ subject, facts, sender }) => [
      `**${capitalise(clip(subject, 90))}**`,
      `${capitalise(subject)}.`,
      ...joinFacts(facts),
      ...(sender ? [sender] : []),
    ],
  },
  {
    name: 'tagline',
    pattern: /\b(?:taglines?|slogans?|mottos?|headlines?|titles?)\b/i,
    missing: 'What you do better than others, and the words of your customers.',
    write: ({ subject, facts, items }) => {
      const name = /^(.{2,80}?),? (?:called|named) ["“]?([^"”,.]{2,40})/i.exec(subject)
      const noun = name ? name[2]! : subject.replace(/^(?:an?|the|my|our) /i, '')
      const lines = [...(name ? [`${name[2]!}, ${name[1]!}.`] : []), ...TAGLINES].slice(
        0,
        Math.min(items ?? 4, TAGLINES.length),
      )
      return [
        lines.map((line, i) => `${i + 1}. ${capitalise(withSubject(line, noun))}`).join('\n'),
        ...joinFacts(facts),
      ]
    },
  },
  {
    name: 'poem',
    pattern: /\b(?:poem|haiku|sonnet|verses?|lyrics|rhyme)\b/i,
    missing: 'A memory of your own would make it yours.',
    write: ({ subject, facts, request }) => [
      (/\bhaiku\b/i.test(request)
        ? [`${capitalise(subject)},`, 'a breath, a pause, then it moves;', 'the quiet follows.']
        : [
            `I looked for ${subject} in the morning light`,
            'and found it waiting there;',
            'I looked again in the quiet night',
            'and found it everywhere.',
          ]
      ).join('\n'),
      ...joinFacts(facts),
    ],
  },
  {
    name: 'social post',
    pattern: /\b(?:tweet|linkedin|instagram|social|caption|post on|thread)\b/i,
    missing: 'A number, a name or a moment that you saw yourself, where the task has none.',
    write: ({ subject, facts }) => [`${capitalise(subject)}.`, ...joinFacts(facts), 'What would you add?'],
  },
  {
    name: 'product copy',
    pattern: /\b(?:copy|ad|advert|landing|product (?:page|description|text)|brochure|newsletter)\b/i,
    missing: 'Proofs (a figure, a customer, a guarantee) and who it is for, where the task does not say.',
    write: ({ subject, facts }) => [`**${capitalise(clip(subject, 90))}**`, `Meet ${subject}.`, ...joinFacts(facts)],
  },
]

const TAGLINES = [
  'Meet {subject}.',
  '{subject}, made simple.',
  '{subject}: ready when you are.',
  'Say yes to {subject}.',
  'Make room for {subject}.',
  'Start with {subject}.',
  '{subject}. That is all.',
  'Better days begin with {subject}.',
  '{subject}, every day.',
  'Find your {subject}.',
] as const

const ARTICLE: Omit<TextKind, 'pattern'> = {
  name: 'article',
  missing: 'Claims and their sources: this lane knows only what the task says.',
  write: ({ subject, facts }) =>
    facts.length > 0
      ? [`**${capitalise(clip(subject, 90))}**`, `This is about ${subject}.`, ...joinFacts(facts)]
      : [
          `**${capitalise(clip(subject, 90))}**`,
          `Opening: a scene that brings ${subject} to life.`,
          `Question: what should a reader who knows nothing about ${subject} understand first?`,
          'First point: one claim, its evidence, and what follows from it.',
          'Second point: another claim, its evidence, and what follows from it.',
          'Counterpoint: the best argument against, and how far it holds.',
          `Close: the one thing to do or to remember about ${subject}.`,
        ],
}

/** Sentences become a paragraph; lines such as "Price: $49" stay a list. */
function joinFacts(facts: readonly string[]): string[] {
  const lines = facts.filter((fact) => /^[\w ]{2,30}: /.test(fact))
  const sentences = facts.filter((fact) => !lines.includes(fact))
  return [
    ...(sentences.length > 0 ? [sentences.map(endSentence).join(' ')] : []),
    ...(lines.length > 0 ? [lines.map((line) => `- ${line}`).join('\n')] : []),
  ]
}

const endSentence = (text: string) => (/[.!?…:]["”’)]?$/.test(text) ? capitalise(text) : `${capitalise(text)}.`)

const TEXT_FORM =
  /^(?:(?:a|an|the|some|\d+|one|two|three|four|five|six|seven|eight|nine|ten|apology|thank[- ]you|reminder|follow[- ]up|complaint|short|long|brief|polite|formal|informal|friendly|professional|warm|catchy|new|good|compelling|product|internal|launch) )*(?:cover letter|product description|product page|press release|blog post|social post|linkedin post|landing page|e-?mail|letter|message|note|post|article|essay|announcement|invitation|notice|memo|taglines?|slogans?|mottos?|headlines?|titles?|newsletter|description|caption|tweet|copy|text|poem|haiku|sonnet|ad)\b(?: (?:to|on) (?:the |my |our |an? )?[\w-]+(?: [A-Z][\w-]+)?(?= (?:about|that|for|on|declin|ask|thank|saying|telling)))?(?: for the intranet(?= that))?\s*(?:about|for|on|that|of|to|saying|telling|:)?\s*/i

/** Sentences about the text rather than for it: length, tone, form. */
const ABOUT_THE_TEXT =
  /^(?:please )?(?:keep|make|use|write|limit|avoid|do not|don't|no |be |tone|style|length|format|the tone|it should|return|answer|reply|output|under \d|at most|max)\b|^(?:in )?(?:about |around |under |at most )?\d{1,4} words?\b/i

const MENTION = /^(?:please )?(?:also )?(?:mention|include|add|say|state|point out|note)(?: that)? /i

/** The facts of a task in its own words: the rest of the request, and the material. */
function readFacts(brief: Brief): TextFacts {
  const [first, ...others] = splitSentences(brief.instruction.slice(0, 4_000), 30).map(({ text }) => text)
  const topic = extractTopic({ ...brief, instruction: trimEndOf(first ?? brief.task, ':', true) }, 400)
  const named = topic.replace(TEXT_FORM, '')
  const sourceSentences = [...others, ...splitSentences(brief.material.slice(0, 6_000), 60).map(({ text }) => text)]
  const facts = sourceSentences
    .filter((sentence) => !ABOUT_THE_TEXT.test(sentence))
    .map((sentence) => capitalise(sentence.replace(MENTION, (verb) => (/ that $/i.test(verb) ? '' : 'Please note '))))
  return {
    subject: named || findNamedSubject(facts) || 'your request',
    facts: [...new Set(facts)],
    recipient: /\b(?:to|for) ((?:Mr|Mrs|Ms|Dr)\.? ?)?([A-Z][\w’'-]{1,30}(?: [A-Z][\w’'-]{1,30})?)(?=[ ,.:;]|$)/.exec(
      brief.instruction.slice(0, 400),
    )?.[2],
    sender:
      /\b(?:signed by|sign(?: it)?(?: as| from)?|sincerely,|regards,) ([A-Z][\w’'-]{1,30}(?: [A-Z][\w’'-]{1,30}){0,2})/.exec(
        brief.task.slice(0, 6_000),
      )?.[1],
    request: brief.instruction,
    items: brief.format.items,
  }
}

/** "Product: Aurora Lamp", when the request itself names only the kind of text. */
const findNamedSubject = (facts: readonly string[]) =>
  facts
    .map((fact) => /^(?:product|name|subject|topic|title|event|company|about): (.{2,200})/i.exec(fact)?.[1])
    .find(Boolean)

function draftText(brief: Brief): Report {
  const facts = readFacts(brief)
  const kind = TEXT_KINDS.find((candidate) => candidate.pattern.test(brief.instruction)) ?? ARTICLE
  return {
    lane: 'writer',
    title: `${capitalise(kind.name)}: ${clip(capitalise(facts.subject), 70)}`,
    summary: kind.write(facts).join('\n\n'),
    sections: [
      { heading: 'Not given, so left out', lines: [kind.missing] },
      {
        heading: 'For a rewrite instead',
        lines: ['Paste your own text after the request: it will be tightened and outlined without adding facts.'],
      },
    ],
    method: METHOD,
  }
}
