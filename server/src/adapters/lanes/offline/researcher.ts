import type { Brief } from './brief.ts'
import { topicOf } from './brief.ts'
import type { Report } from './report.ts'
import { clip, contentWordsOf, frequencies, type Sentence, sentencesOf, stem } from './text.ts'

const METHOD =
  'Offline researcher: extracts from the text in your task, quotes verbatim, consults nothing else and no language model.'
const DEFAULT_POINTS = 5

/** Key points with quoted evidence from the material; without material, a plan that says what evidence would settle it. */
export function research(brief: Brief): Report {
  const source = [...brief.context, brief.material].filter(Boolean).join('\n\n')
  const sentences = sentencesOf(source)
  return sentences.length >= 2 ? fromMaterial(brief, sentences) : withoutMaterial(brief)
}

function fromMaterial(brief: Brief, sentences: readonly Sentence[]): Report {
  const asked = [...new Set(contentWordsOf(brief.instruction).map(stem))]
  const picked = pick(sentences, asked, brief.wish.items ?? Math.min(DEFAULT_POINTS, Math.ceil(sentences.length / 2)))
  const present = new Set(sentences.flatMap((sentence) => contentWordsOf(sentence.text).map(stem)))
  const missing = [...new Set(contentWordsOf(brief.instruction))].filter(
    (word) => word.length > 4 && !present.has(stem(word)) && !ASKING.has(word),
  )
  const hedged = sentences.filter((sentence) => HEDGES.test(sentence.text))
  return {
    lane: 'researcher',
    title: `Key points: ${topicOf(brief)}`,
    summary: `${sentences.length} sentences read; ${picked.length} carry most of the content. The strongest: “${clip(picked[0]!.text, 300)}”`,
    sections: [
      {
        heading: 'Key points, with evidence',
        lines: picked.map(
          (sentence) => `${pointOf(sentence.text)} — “${clip(sentence.text, 400)}” [sentence ${sentence.index}]`,
        ),
      },
      { heading: 'Figures and dates in the text', lines: figuresOf(sentences) },
      { heading: 'Names in the text', lines: namesOf(sentences) },
      {
        heading: 'How sure the text is of itself',
        lines:
          hedged.length > 0
            ? hedged.slice(0, 4).map((sentence) => `Hedged: “${clip(sentence.text, 240)}” [sentence ${sentence.index}]`)
            : ['No hedging words were found; the text states its claims flatly, which is not the same as proof.'],
      },
      {
        heading: 'Not covered by the text',
        lines: missing.slice(0, 8).map((word) => `Nothing in the material mentions “${word}”.`),
      },
    ],
    method: METHOD,
  }
}

const HEDGES =
  /\b(?:may|might|could|suggests?|appears?|seems?|likely|unlikely|possibly|perhaps|reportedly|allegedly|estimated|approximately|unclear|preliminary)\b/i

const ASKING = new Set(
  'summarize summarise explain compare research investigate evidence sources please points findings following article passage paper report quotes quote based given study studies extract claim claims state stated states identify list main below above against where each describe review tell mention mentions according'.split(
    ' ',
  ),
)

/**
 * A sentence weighs what its words weigh in the whole text, more when it answers the question or carries a figure,
 * less when it repeats what was already picked.
 */
function pick(sentences: readonly Sentence[], asked: readonly string[], count: number): Sentence[] {
  const terms = sentences.map((sentence) => [...new Set(contentWordsOf(sentence.text).map(stem))])
  const weights = new Map(frequencies(terms.flat()))
  const score = (at: number, covered: ReadonlySet<string>) => {
    const own = terms[at]!
    if (own.length < 3) return 0
    const content = own.reduce((sum, term) => sum + (covered.has(term) ? 0.25 : 1) * Math.min(weights.get(term)!, 6), 0)
    const answers = own.filter((term) => asked.includes(term)).length
    const figures = /\d/.test(sentences[at]!.text) ? 1.15 : 1
    const lead = at === 0 ? 1.1 : 1
    return (content / Math.sqrt(own.length)) * (1 + 0.35 * answers) * figures * lead
  }
  const chosen: number[] = []
  const covered = new Set<string>()
  while (chosen.length < Math.min(count, sentences.length)) {
    let best = -1
    let bestScore = 0
    for (let at = 0; at < sentences.length; at++) {
      if (chosen.includes(at)) continue
      const value = score(at, covered)
      if (value > bestScore) {
        best = at
        bestScore = value
      }
    }
    if (best < 0) break
    chosen.push(best)
    for (const term of terms[best]!) covered.add(term)
  }
  return chosen.length > 0 ? chosen.map((at) => sentences[at]!) : sentences.slice(0, 1)
}

/** The three heaviest words of a sentence, as a handle for the eye; the quote beside it is the evidence. */
function pointOf(text: string): string {
  const words = [...new Set(contentWordsOf(text))].sort((a, b) => b.length - a.length).slice(0, 3)
  const order = contentWordsOf(text)
  return words.sort((a, b) => order.indexOf(a) - order.indexOf(b)).join(' · ') || 'Point'
}

function figuresOf(sentences: readonly Sentence[]): string[] {
  const lines: string[] = []
  for (const sentence of sentences) {
    const figures = sentence.text.match(
      /(?<![\p{L}\d])[$€£]?\d[\d,.]*\d?\s?(?:%|percent|million|billion|thousand|years?|months?|days?|hours?|km|kg|mg|USD|EUR)?/giu,
    )
    if (!figures) continue
    lines.push(
      `${[...new Set(figures.map((figure) => figure.trim().replace(/[.,]$/, '')))].slice(0, 6).join(', ')} [sentence ${sentence.index}]`,
    )
    if (lines.length >= 8) break
  }
  return lines
}

function namesOf(sentences: readonly Sentence[]): string[] {
  const names = sentences.flatMap(
    (sentence) =>
      sentence.text.slice(1).match(/\b\p{Lu}[\p{L}\p{N}]+(?: (?:of |the |de )?\p{Lu}[\p{L}\p{N}]+){0,3}/gu) ?? [],
  )
  return frequencies(names)
    .slice(0, 8)
    .map(([name, count]) => `${name} (${count}×)`)
}

function withoutMaterial(brief: Brief): Report {
  const topic = topicOf(brief, 120)
  const words = [...new Set(contentWordsOf(brief.instruction || brief.task))]
    .filter((word) => !ASKING.has(word))
    .slice(0, 6)
  const compared = /\b(?:vs\.?|versus|compare|difference|between)\b/i.test(brief.task)
  return {
    lane: 'researcher',
    title: `Research plan: ${clip(topic, 80)}`,
    summary:
      'No source text was given and this lane invents none, so here is the plan that would answer the question, and what evidence would settle it.',
    sections: [
      {
        heading: 'Questions to answer',
        lines: [
          `What exactly is asked, in measurable terms: “${topic}”?`,
          ...words.slice(0, 3).map((word) => `How is “${word}” defined and measured, and by whom?`),
          compared
            ? 'Which measure applies to every side of the comparison, over the same period?'
            : 'What is the strongest evidence against the expected answer?',
          'What changed in the last two years that would make older sources misleading?',
        ],
      },
      {
        heading: 'Search phrases',
        lines: [
          words.join(' '),
          `"${words.slice(0, 2).join(' ')}" review OR survey`,
          `${words.slice(0, 3).join(' ')} data OR statistics`,
          `${words.slice(0, 3).join(' ')} criticism OR limitations`,
        ].filter((line) => line.length > 4),
      },
      {
        heading: 'Evidence, strongest first',
        lines: [
          'Primary data, filings, standards or original papers.',
          'Systematic reviews and replication results.',
          'Independent measurements with a stated method.',
          'Expert commentary: for context, not as proof.',
        ],
      },
      {
        heading: 'To get extracted findings',
        lines: ['Paste the source text after your question: the answer will quote it sentence by sentence.'],
      },
    ],
    method: METHOD,
  }
}
