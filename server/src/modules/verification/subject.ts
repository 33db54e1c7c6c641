import { type Finding, failed, notApplicable, passed } from './finding.ts'
import { numberOfWord } from './numbers.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'
import { wordsOf } from './text.ts'
import { topicsOf } from './topics.ts'

/** Words of tasks that say what to produce, not what about. */
const COMMON = new Set(
  (
    'about after again also another answer any around because been before being both could does doing each exactly explain find from ' +
    'generate give gives have having help here how into just know like list make makes making many more most much must name need needs ' +
    'only other over please provide really review say short should show some something sure tell than thank that their them then there ' +
    'these they thing things this those three through today under using very want well were what when where which while who why will with word words ' +
    'compose prepare produce design develop build suggest propose offer share would write your yours analyze analyse create compare comparison describe draft summarize summarise following return output format sentence sentences ' +
    'paragraph line lines table rows bullet bullets points reply message text return only valid json code function script program ' +
    'main best good great new old first last next long brief quick simple funny silly joke jokes pun puns poem limerick haiku roast email mail letter post blog intro ' +
    'article tagline slogan background history known causes cause work works between against without within during every still keep kind warm friendly ' +
    'customer customers user users client company team people person someone everybody price policy steps step question questions plan plans option options ' +
    'compute calculate number numbers value values total recommend should python javascript typescript java rust golang bash sql ruby php kotlin swift ' +
    'eine einen einer einem nicht oder auch sind wird werden über bitte schreibe schreib nenne erkläre kurz kurzen kurze welche welcher warum wofür mir uns ' +
    'pour avec dans cette vous nous votre écris rédige explique donne réponds pourquoi comment quelle quels ' +
    'para como esta este sobre escribe explica dame breve cuál qué por cómo una unos contesta ' +
    'scrivi spiega perché come della delle sono breve rispondi escreva explique porque uma você schrijf geef waarom'
  ).split(' '),
)

const MIN_WORDS = 5

/** Whether the answer is about what the task is about. Without a single word in common, or one of the same field, it is not. */
export function checkSubject(task: ReadTask, output: ReadText): Finding {
  // Who explains code uses words of its own for it.
  if (task.is.translation || task.targetLanguage || task.isVague || task.lacksMaterial || task.code)
    return notApplicable
  const keys = contentWords(
    [...task.full.words, ...task.context.flatMap((memory) => wordsOf(memory).slice(0, 400))],
    60,
  )
  const words = contentWords(output.words, 1_500)
  if (keys.length === 0 || words.length < MIN_WORDS) return notApplicable
  const stems = new Set(words.map((word) => word.slice(0, 3)))
  const isShared = (key: string) =>
    (stems.has(key.slice(0, 3)) || key.length >= 7) && words.some((word) => sharesStem(key, word))
  if (keys.some(isShared) || sharesNumber(task, output)) return passed
  const fields = topicsOf(keys)
  if (fields.some((field) => words.some((word) => field.has(word) || field.has(singular(word))))) return passed
  // Not naming the subject is no fault, so the answer must plainly be about another one.
  const subject = subjectOf(task.full.words)
  if (task.is.creative && topicsOf(subject).length === 0) return notApplicable
  const enough = task.is.creative ? 2 : 3
  return topicsOf(words).some((field) => !fields.includes(field) && countIn(field, words) >= enough)
    ? failed('It is about another subject.')
    : notApplicable
}

const ABOUT = new Set('about on over regarding concerning über zum zur sur sobre su'.split(' '))

/** What a joke or a poem is to be about: "a joke about dentists". */
function subjectOf(words: readonly string[]): string[] {
  const at = words.findIndex((word) => ABOUT.has(word))
  return at < 0 ? [] : words.slice(at + 1, at + 5).filter((word) => word.length > 2 && !COMMON.has(word))
}

const countIn = (field: ReadonlySet<string>, words: readonly string[]) =>
  new Set(words.flatMap((word) => (field.has(word) ? [word] : field.has(singular(word)) ? [singular(word)] : []))).size

const isDense = (word: string) => /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u.test(word)

function contentWords(words: readonly string[], limit: number): string[] {
  const unique = new Set<string>()
  for (const word of words) {
    if (unique.size >= limit) break
    if (isDense(word)) for (let i = 0; i + 1 < Math.min(word.length, 200); i++) unique.add(word.slice(i, i + 2))
    else if (word.length > 2 && !COMMON.has(word) && !/^\d+$/.test(word) && numberOfWord(word) === undefined)
      for (const part of word.split("'")) if (part.length > 2 && !STOP.has(part)) unique.add(part)
  }
  return [...unique]
}

const STOP = new Set(
  'the and for are was were you not but has had his her its our out can get got too all one two she him let put set why how who did does don isn won ain use via per etc one off now own der die das und ist ein mit von auf den dem des les des est une pas que qui sur par los las del con por una son non che per dei het een van met dat och det som für'.split(
    ' ',
  ),
)

const sharesStem = (a: string, b: string): boolean => {
  if (a === b) return true
  const shorter = Math.min(a.length, b.length)
  if (shorter < 4) return Math.abs(a.length - b.length) <= 2 && a.slice(0, shorter) === b.slice(0, shorter)
  const needed = Math.max(4, Math.ceil(shorter * 0.7))
  const [short, long] = a.length < b.length ? [singular(a), b] : [singular(b), a]
  // "bees" and "beekeeping".
  if (short.length >= 3 && long.startsWith(short)) return true
  return a.slice(0, needed) === b.slice(0, needed) || (shorter >= 4 && (a.endsWith(b) || b.endsWith(a)))
}

const singular = (word: string) => (word.endsWith('s') ? word.slice(0, -1) : word)

/** Figures of the task in the answer: "7 times 6", "order 7719". */
const sharesNumber = (task: ReadTask, output: ReadText) => {
  const figures = new Set(task.full.raw.match(/\d{2,12}/g)?.slice(0, 200))
  return (
    figures.size > 0 &&
    (output.raw
      .match(/\d{2,12}/g)
      ?.slice(0, 500)
      .some((figure) => figures.has(figure)) ??
      false)
  )
}
