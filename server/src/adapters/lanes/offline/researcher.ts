import { spendSteps } from '../../../platform/step-budget.ts'
import type { Brief } from './brief.ts'
import { extractTopic } from './brief.ts'
import { findRecalled } from './recalled.ts'
import type { Report } from './report.ts'
import { clip, countFrequencies, extractContentWords, type Sentence, splitSentences, stem } from './text.ts'

const METHOD =
  'Offline researcher: extracts from the text in your task, quotes verbatim, consults nothing else and no language model.'
const DEFAULT_POINTS = 5

/** Key points with quoted evidence from the material; without material, a research plan. */
export function researchText(brief: Brief): Report {
  const sentences = splitSentences(brief.material || findRecalled(brief).join('\n'))
  return sentences.length >= 2 ? reportFromMaterial(brief, sentences) : reportResearchPlan(brief)
}

function reportFromMaterial(brief: Brief, sentences: readonly Sentence[]): Report {
  const queryTerms = new Set(extractContentWords(brief.instruction).map(stem))
  const keySentences = selectSentences(
    sentences,
    queryTerms,
    brief.format.items ?? Math.min(DEFAULT_POINTS, Math.ceil(sentences.length / 2)),
  )
  const presentStems = new Set(sentences.flatMap((sentence) => extractContentWords(sentence.text).map(stem)))
  const missingWords = [...new Set(extractContentWords(brief.instruction))].filter(
    (word) => word.length > 4 && !presentStems.has(stem(word)) && !REQUEST_WORDS.has(word),
  )
  const hedgedSentences = sentences.filter((sentence) => HEDGES.test(sentence.text))
  return {
    lane: 'researcher',
    title: `Key points: ${extractTopic(brief)}`,
    summary: `${sentences.length} sentences read; ${keySentences.length} carry most of the content. The strongest: “${clip(keySentences[0]!.text, 300)}”`,
    sections: [
      {
        heading: 'Key points, with evidence',
        lines: keySentences.map(
          (sentence) => `${formatKeyPoint(sentence.text)} — “${clip(sentence.text, 400)}” [sentence ${sentence.index}]`,
        ),
      },
      { heading: 'Figures and dates in the text', lines: listFigures(sentences) },
      { heading: 'Names in the text', lines: listNames(sentences) },
      {
        heading: 'How sure the text is of itself',
        lines:
          hedgedSentences.length > 0
            ? hedgedSentences
                .slice(0, 4)
                .map((sentence) => `Hedged: “${clip(sentence.text, 240)}” [sentence ${sentence.index}]`)
            : ['No hedging words were found; the text states its claims flatly, which is not the same as proof.'],
      },
      {
        heading: 'Not covered by the text',
        lines: missingWords.slice(0, 8).map((word) => `Nothing in the material mentions “${word}”.`),
      },
    ],
    method: METHOD,
  }
}

const HEDGES =
  /\b(?:may|might|could|suggests?|appears?|seems?|likely|unlikely|possibly|perhaps|reportedly|allegedly|estimated|approximately|unclear|preliminary)\b/i

const REQUEST_WORDS = new Set(
  'summarize summarise explain compare research investigate evidence sources please points findings following article passage paper report quotes quote based given study studies extract claim claims state stated states identify list main below above against where each describe review tell mention mentions according'.split(
    ' ',
  ),
)

/**
 * Greedy selection. A sentence scores by the frequency of its terms in the whole text, higher when it matches the query or
 * contains a figure, lower when it repeats selected terms.
 */
function selectSentences(sentences: readonly Sentence[], queryTerms: ReadonlySet<string>, count: number): Sentence[] {
  const terms = sentences.map((sentence) => [...new Set(extractContentWords(sentence.text).map(stem))])
  const weights = new Map(countFrequencies(terms.flat()))
  const score = (i: number, coveredTerms: ReadonlySet<string>) => {
    const sentenceTerms = terms[i]!
    if (sentenceTerms.length < 3) return 0
    const content = sentenceTerms.reduce(
      (sum, term) => sum + (coveredTerms.has(term) ? 0.25 : 1) * Math.min(weights.get(term)!, 6),
      0,
    )
    const matchCount = sentenceTerms.filter((term) => queryTerms.has(term)).length
    const figureFactor = /\d/.test(sentences[i]!.text) ? 1.15 : 1
    const leadFactor = i === 0 ? 1.1 : 1
    return (content / Math.sqrt(sentenceTerms.length)) * (1 + 0.35 * matchCount) * figureFactor * leadFactor
  }
  const selected: number[] = []
  const coveredTerms = new Set<string>()
  while (selected.length < Math.min(count, sentences.length)) {
    spendSteps(sentences.length)
    let bestIndex = -1
    let bestScore = 0
    for (let i = 0; i < sentences.length; i++) {
      if (selected.includes(i)) continue
      const value = score(i, coveredTerms)
      if (value > bestScore) {
        bestIndex = i
        bestScore = value
      }
    }
    if (bestIndex < 0) break
    selected.push(bestIndex)
    for (const term of terms[bestIndex]!) coveredTerms.add(term)
  }
  return selected.length > 0 ? selected.map((i) => sentences[i]!) : sentences.slice(0, 1)
}

/** The three longest content words of a sentence, as a label for its quote. */
function formatKeyPoint(text: string): string {
  const words = [...new Set(extractContentWords(text))].sort((a, b) => b.length - a.length).slice(0, 3)
  const order = extractContentWords(text)
  return words.sort((a, b) => order.indexOf(a) - order.indexOf(b)).join(' · ') || 'Point'
}

function listFigures(sentences: readonly Sentence[]): string[] {
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

function listNames(sentences: readonly Sentence[]): string[] {
  const names = sentences.flatMap(
    (sentence) =>
      sentence.text.slice(1).match(/\b\p{Lu}[\p{L}\p{N}]+(?: (?:of |the |de )?\p{Lu}[\p{L}\p{N}]+){0,3}/gu) ?? [],
  )
  return countFrequencies(names)
    .slice(0, 8)
    .map(([name, count]) => `${name} (${count}×)`)
}

function reportResearchPlan(brief: Brief): Report {
  const topic = extractTopic(brief, 120)
  const words = [...new Set(extractContentWords(brief.instruction || brief.task))]
    .filter((word) => !REQUEST_WORDS.has(word))
    .slice(0, 6)
  const isComparison = /\b(?:vs\.?|versus|compare|difference|between)\b/i.test(brief.task)
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
          isComparison
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
