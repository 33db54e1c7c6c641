import { readFileSync } from 'node:fs'

const MAX_WORDS = 64
const MAX_SYNONYMS = 32

/** A small committed list of words that stand for each other. */
export function readSynonyms() {
  const { groups } = JSON.parse(
    readFileSync(new URL('../../../data/memory/synonyms.json', import.meta.url), 'utf8'),
  ) as { groups: string[][] }
  const byWord = new Map<string, string[]>()
  for (const group of groups)
    for (const word of group)
      byWord.set(word, [...(byWord.get(word) ?? []), ...group.filter((other) => other !== word)])

  return {
    /** What the words of a text, in the singular or in a simple plural, can also be called. */
    findFor(text: string): string[] {
      const words =
        text
          .toLowerCase()
          .match(/[\p{L}-]{2,40}/gu)
          ?.slice(0, MAX_WORDS) ?? []
      const synonyms = words.flatMap((word) => byWord.get(word) ?? byWord.get(singular(word)) ?? [])
      return [...new Set(synonyms)].slice(0, MAX_SYNONYMS)
    },
  }
}

const singular = (word: string) =>
  word.endsWith('ies') ? `${word.slice(0, -3)}y` : word.replace(/(?<=[sxz]|ch|sh)es$|s$/, '')
