import type { RecallCandidate } from './memory.store.ts'

/** Why a memory was recalled, with the words that decided it: of the task, of a synonym, or spelled almost the same. */
export type RecallReason = { id: string; why: 'words' | 'synonym' | 'spelling' | 'newest'; words: string[] }

/** Text search configurations of PostgreSQL, with words that are common in the language and rare in the others. */
const COMMON_WORDS: Readonly<Record<string, string>> = {
  english: 'the of and to is are was for with that this what which how please my your',
  german: 'der die das und ist nicht ein eine mit für auf dem den wie was bitte mein ich',
  french: 'le la les des est une un pour dans avec sur que qui quel mon ma vous je',
  spanish: 'el los las una del que por para con mi su qué cuál está como es yo',
  italian: 'il gli una del della che per con mio sono come cosa qual è di nel',
  portuguese: 'os uma do da que por para com meu minha não qual são em você é',
  dutch: 'het een van de en voor met niet wat welke mijn zijn hoe ik op',
  swedish: 'och att det som en för med inte vad vilken min är jag på',
  norwegian: 'og det som en for med ikke hva hvilken min er jeg på til',
  danish: 'og det som en for med ikke hvad hvilken min er jeg på til af',
  finnish: 'ja on ei se että mikä minun ovat kun niin mutta kuka',
  russian: 'и в не на что как это мой какой для по из он она мне',
  turkish: 've bir bu için ile ne hangi benim değil çok da de mi',
}

const MAX_LANGUAGE_WORDS = 60

/** The language whose common words a text has most of; English when it has none. */
export function detectLanguage(text: string): string {
  const words = new Set(
    text
      .toLowerCase()
      .match(/[\p{L}]{1,20}/gu)
      ?.slice(0, MAX_LANGUAGE_WORDS) ?? [],
  )
  let best = { language: 'english', count: 0 }
  for (const [language, common] of Object.entries(COMMON_WORDS)) {
    const count = common.split(' ').filter((word) => words.has(word)).length
    if (count > best.count) best = { language, count }
  }
  return best.language
}

const SYNONYM_WEIGHT = 0.4
const SPELLING_WEIGHT = 0.6
const MIN_SIMILARITY = 0.5
const MIN_SPELLED_LETTERS = 5
/** Every run of a session does this in the process that serves it, so few words are compared with few others. */
const MAX_SPELLED_WORDS = 8
const MAX_EXCERPT_WORDS = 60
const HALF_LIFE_MS = 14 * 24 * 60 * 60 * 1000

/**
 * The candidates that have something to do with a task, best first. A word counts the more the fewer candidates have it; a
 * word of the task that none of them has is looked for in other spellings, by the trigrams that two words share. A new
 * memory counts up to twice an old one.
 */
export function rankMemories(task: string, candidates: readonly RecallCandidate[], now: Date): RecallReason[] {
  const frequency = new Map<string, number>()
  for (const { shared, related } of candidates)
    for (const word of [...shared, ...related]) frequency.set(word, (frequency.get(word) ?? 0) + 1)
  const weigh = (word: string) => Math.log(1 + candidates.length / (frequency.get(word) ?? 1))
  const unmatched = findUnmatched(task, frequency)
  const rareWeight = Math.log(1 + candidates.length)
  const trigrams = createTrigrams()

  const ranked = candidates.flatMap((candidate) => {
    const spelled = findSpelled(unmatched, candidate.excerpt, trigrams)
    const score =
      sum(candidate.shared, weigh) +
      SYNONYM_WEIGHT * sum(candidate.related, weigh) +
      SPELLING_WEIGHT * sum(spelled, ({ similarity }) => similarity * rareWeight)
    if (score === 0) return []
    const age = Math.max(0, now.getTime() - candidate.created_at.getTime())
    const freshness = (1 + 0.5 ** (age / HALF_LIFE_MS)) / 2
    return { score: score * freshness, reason: toReason(candidate, spelled) }
  })
  ranked.sort((a, b) => b.score - a.score || (a.reason.id < b.reason.id ? 1 : -1))
  return ranked.map(({ reason }) => reason)
}

const MAX_REASON_WORDS = 8

function toReason({ id, shared, related }: RecallCandidate, spelled: readonly Spelled[]): RecallReason {
  if (shared.length > 0) return { id, why: 'words', words: shared.slice(0, MAX_REASON_WORDS) }
  if (related.length > 0) return { id, why: 'synonym', words: related.slice(0, MAX_REASON_WORDS) }
  return { id, why: 'spelling', words: [...new Set(spelled.map(({ word }) => word))].slice(0, MAX_REASON_WORDS) }
}

const sum = <Item>(items: readonly Item[], read: (item: Item) => number) =>
  items.reduce((total, item) => total + read(item), 0)

/** Longer words of the task that no candidate has in any form. */
function findUnmatched(task: string, frequency: ReadonlyMap<string, number>): string[] {
  const words = new Set(task.toLowerCase().match(/[\p{L}\p{N}]{1,40}/gu) ?? [])
  const stems = [...frequency.keys()]
  return [...words]
    .filter((word) => word.length >= MIN_SPELLED_LETTERS && !stems.some((stem) => word.startsWith(stem.slice(0, 5))))
    .slice(0, MAX_SPELLED_WORDS)
}

type Spelled = { word: string; similarity: number }

function findSpelled(unmatched: readonly string[], excerpt: string, trigrams: Trigrams): Spelled[] {
  if (unmatched.length === 0) return []
  const words = [...new Set(excerpt.toLowerCase().match(/[\p{L}\p{N}]{1,40}/gu) ?? [])]
    .filter((word) => word.length >= MIN_SPELLED_LETTERS - 1)
    .slice(0, MAX_EXCERPT_WORDS)
  return unmatched.flatMap((word) => {
    let best: Spelled | undefined
    for (const other of words) {
      if (Math.abs(other.length - word.length) > 3) continue
      const similarity = shareOfTrigrams(trigrams(word), trigrams(other))
      if (similarity >= MIN_SIMILARITY && similarity > (best?.similarity ?? 0)) best = { word: other, similarity }
    }
    return best ?? []
  })
}

/** The share of trigrams that two words have in common, as `pg_trgm` counts it: the ends of a word count as blanks. */
export const trigramSimilarity = (a: string, b: string): number => shareOfTrigrams(trigramsOf(a), trigramsOf(b))

function shareOfTrigrams(first: ReadonlySet<string>, second: ReadonlySet<string>): number {
  let common = 0
  for (const trigram of first) if (second.has(trigram)) common += 1
  return common / (first.size + second.size - common)
}

type Trigrams = (word: string) => ReadonlySet<string>

/** Words return in many memories. */
function createTrigrams(): Trigrams {
  const ofWord = new Map<string, ReadonlySet<string>>()
  return (word) => {
    const trigrams = ofWord.get(word) ?? trigramsOf(word)
    ofWord.set(word, trigrams)
    return trigrams
  }
}

function trigramsOf(word: string): Set<string> {
  const padded = `  ${word} `
  return new Set(Array.from({ length: padded.length - 2 }, (_, i) => padded.slice(i, i + 3)))
}
