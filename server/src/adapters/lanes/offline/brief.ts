import { sentencesOf, wordsOf } from './text.ts'

/** What the caller asked, apart from what the caller pasted. */
export type Brief = {
  instruction: string
  material: string
  fences: readonly Fence[]
  /** What memory put in front of the task. */
  context: readonly string[]
  task: string
  wish: Wish
}

export type Fence = { language: string; code: string }

/** The form the caller asked the answer to have. */
export type Wish = { form: 'markdown' | 'json' | 'list'; items: number | undefined; maxWords: number | undefined }

const NUMBER_WORDS = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten']
const MAX_ITEMS = 20

const COMMANDS = new Set(
  (
    'analyse analyze answer build calculate check classify compare compose compute convert create critique debug ' +
    'decide describe design draft edit evaluate explain extract find fix generate give help identify improve list ' +
    'make optimise optimize outline paraphrase plan polish prepare prioritise prioritize produce proofread rank ' +
    'recommend refactor reply respond review rewrite shorten show simplify suggest summarise summarize tell test ' +
    'translate triage write'
  ).split(' '),
)

/** What steers a terminal or turns the reading direction, and is never part of what somebody wrote. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it is about.
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** Splits a task into instruction and material. When in doubt everything is the instruction and nothing is material. */
export function readBrief(task: string, context: readonly string[] = []): Brief {
  const clean = task.replace(/\r\n?/g, '\n').replace(UNSEEN, '').trim()
  const fences = fencesOf(clean)
  const { instruction, material } = fences.length > 0 ? fencedParts(clean, fences) : plainParts(clean)
  return { instruction, material, fences, context, task: clean, wish: readWish(instruction || clean) }
}

function fencesOf(text: string): Fence[] {
  const fences: Fence[] = []
  const lines = text.split('\n')
  let open: { language: string; lines: string[] } | undefined
  for (const line of lines) {
    const fence = /^\s*```\s*([\w+#.-]*)/.exec(line)
    if (!fence) {
      open?.lines.push(line)
    } else if (open) {
      fences.push({ language: open.language, code: open.lines.join('\n') })
      open = undefined
    } else {
      open = { language: fence[1]!.toLowerCase(), lines: [] }
    }
    if (fences.length >= 10) break
  }
  if (open && open.lines.length > 0) fences.push({ language: open.language, code: open.lines.join('\n') })
  return fences
}

function fencedParts(text: string, fences: readonly Fence[]) {
  let inside = false
  const outside = text.split('\n').filter((line) => {
    const fence = /^\s*```/.test(line)
    if (fence) inside = !inside
    return !fence && !inside
  })
  return { instruction: outside.join('\n').trim(), material: fences.map((fence) => fence.code).join('\n\n') }
}

type Parts = { instruction: string; material: string }

function plainParts(text: string): Parts {
  const data = dataFirst(text)
  if (data) return data
  const gap = text.search(/\n\s*\n/)
  if (gap > 0 && gap <= 600) {
    const head = text.slice(0, gap).trim()
    const rest = text.slice(gap).trim()
    if (rest.length >= 20) {
      return looksLikeCommand(head) || !looksLikeCommand(lastParagraph(rest))
        ? { instruction: head, material: rest }
        : { instruction: lastParagraph(rest), material: text.slice(0, text.length - lastParagraph(rest).length).trim() }
    }
  }
  const colon = text.search(/:(\s|$)/)
  if (colon > 0 && colon <= 300 && isMaterial(text.slice(0, colon), text.slice(colon + 1))) {
    return { instruction: text.slice(0, colon).trim(), material: text.slice(colon + 1).trim() }
  }
  const line = text.indexOf('\n')
  if (line > 0 && line <= 300 && text.length - line > 12) {
    return { instruction: text.slice(0, line).trim(), material: text.slice(line + 1).trim() }
  }
  const quoted = /["“]([^"“”]{40,})["”]/.exec(text)
  if (quoted) return { instruction: text.replace(quoted[0], ' ').trim(), material: quoted[1]!.trim() }
  const sentences = sentencesOf(text)
  if (sentences.length >= 3) {
    const first = sentences[0]!.text
    const last = sentences.at(-1)!.text
    if (looksLikeCommand(first))
      return { instruction: first, material: text.slice(text.indexOf(first) + first.length).trim() }
    if (looksLikeCommand(last)) return { instruction: last, material: text.slice(0, text.lastIndexOf(last)).trim() }
  }
  return { instruction: text, material: '' }
}

/** Some paste first and ask afterwards: JSON with a question behind it, or a table whose first line is its header. */
function dataFirst(text: string): Parts | undefined {
  if (/^[[{]/.test(text)) {
    const end = Math.max(text.lastIndexOf(']'), text.lastIndexOf('}')) + 1
    const rest = text.slice(end).trim()
    return isJson(text.slice(0, end)) && rest ? { instruction: rest, material: text.slice(0, end) } : undefined
  }
  const lines = text.split('\n')
  const cells = (line: string | undefined) => line?.split(/[,;|\t]/).length ?? 0
  const width = cells(lines[0])
  if (width < 2 || cells(lines[1]) !== width || cells(lines[2]) !== width) return undefined
  const end = lines.findIndex((line) => cells(line) !== width)
  if (end < 0) return { instruction: '', material: text }
  const rest = lines.slice(end).join('\n').trim()
  return rest ? { instruction: rest, material: lines.slice(0, end).join('\n') } : undefined
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** What is asked for here is done to a text, so whatever follows the colon is that text, however short. */
const ON_A_TEXT =
  /\b(?:proofread|rewrite|rephrase|paraphrase|shorten|simplify|polish|edit|correct|improve|tighten|summari[sz]e|translate|shorter|clearer|formal|informal|turn|classify|triage|reply to|respond to|customer (?:says|writes|wrote))\b/i

/** A few words after a colon belong to the request; figures, lines or a longer text were brought along. */
const isMaterial = (head: string, rest: string) =>
  rest.trim().length >= 50 ||
  /\d|\n/.test(rest.trim()) ||
  (ON_A_TEXT.test(head) && wordsOf(rest.slice(0, 200)).length >= 3)

const lastParagraph = (text: string) => text.slice(text.lastIndexOf('\n') + 1).trim()

/** A command starts with a verb of asking, perhaps after "please" or "can you", or ends as a question. */
export function looksLikeCommand(sentence: string): boolean {
  const words = wordsOf(sentence.slice(0, 200))
  const start = words.findIndex(
    (word) => !['please', 'can', 'could', 'you', 'would', 'kindly', 'now', 'then'].includes(word),
  )
  return COMMANDS.has(words[start] ?? '') || sentence.trimEnd().endsWith('?')
}

/**
 * Many tasks speak of JSON without wanting any: "why does my API return JSON with null fields" is a question. So a verb
 * counts only as an order, at the start of a clause, and "as JSON" or "in JSON" only where the clause ends with it.
 */
const asksForJson = (text: string) => JSON_ORDER.test(text) || JSON_MANNER.test(text)

const JSON_ORDER =
  /(?:^|[.!?:;,(\n]\s*|\b(?:please|and|then|must|should|just|only) )(?:return|output|respond with|reply with|answer with|give me|produce)(?: (?:an?|the|only|valid|strict|plain|raw|(?:your |the )?(?:answer|result|output) as)){0,3} json\b/

const JSON_MANNER =
  /\b(?:as|in|into)(?: (?:an?|only|valid|strict|plain|raw)){0,2} json\b(?=\s*(?:$|[.,;:!?)\n]|(?:only|format|please|with|object|array)\b))|\bjson only\b|\bonly json\b/

export function readWish(instruction: string): Wish {
  const text = instruction.slice(0, 2000).toLowerCase()
  const json = asksForJson(text)
  const list = /\b(?:bullet(?:ed)?(?: point)?s?(?! notes)|numbered list|as a list|checklist)\b/.test(text)
  return { form: json ? 'json' : list ? 'list' : 'markdown', items: readCount(text), maxWords: readMaxWords(text) }
}

function readCount(text: string): number | undefined {
  const found =
    /\b(\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten)(?: [a-z-]+){0,2}? (?:jokes?|puns?|bullets?|points?|bullet points|items|takeaways|findings|ideas|options|tips|one-liners?|roasts?|headlines?|slogans?|taglines?|titles?|names|sentences|insights|facts|reasons|steps)\b/.exec(
      text,
    )
  const top = found ? found[1]! : /\btop (\d{1,2})\b/.exec(text)?.[1]
  if (!top) return undefined
  const count = NUMBER_WORDS.includes(top) ? NUMBER_WORDS.indexOf(top) + 1 : Number(top)
  return count >= 1 && count <= MAX_ITEMS ? count : undefined
}

function readMaxWords(text: string): number | undefined {
  const found =
    /\b(?:under|below|within|at most|no more than|maximum(?: of)?|max|up to|fewer than|less than|in) (\d{1,4}) words?\b/.exec(
      text,
    ) ?? /\b(\d{1,4})[ -]words? (?:or less|or fewer|max|maximum|limit)\b/.exec(text)
  const words = found ? Number(found[1]) : 0
  return words >= 10 ? words : undefined
}

/** "…, warm tone, about 80 words" says how, not what. */
const LENGTH_OR_TONE =
  /(?:,? ?\b(?:in|of|with|about|around|under|at most|up to|max(?:imum)?|no more than)? ?\b(?:an? )?(?:\d{1,4} (?:words?|sentences|lines)|[a-z]+ tone)\b)+[^a-z]*$/i

/** What the task is about, for titles and drafts: the instruction without its verb, its politeness and its form. */
export function topicOf(brief: Brief, limit = 80): string {
  const source = (brief.instruction || brief.task).split('\n')[0]!.slice(0, 400)
  const about = /\b(?:about|regarding|concerning|on the topic of|on the subject of)\s+(?!\d)(.{3,})$/i.exec(source)?.[1]
  const bare = (about ?? source)
    .replace(
      /^(?:(?:please|can you|could you|would you|i need you to|i want you to|(?:i|we) (?:need|want|would like)|i'd like|give me|help me(?: to)?|kindly|hi|hello|hey)[,\s]+){1,3}/i,
      '',
    )
    .replace(/^(?:to )?[a-z]+(?: me| us)? (?:an? |the |some |my |our |this |\d+ )?/i, (head) =>
      about || !looksLikeCommand(head) ? head : '',
    )
    .replace(LENGTH_OR_TONE, '')
    .replace(/[.?!:,;\s]+$/, '')
  return bare.length > limit ? bare.slice(0, Math.max(20, bare.lastIndexOf(' ', limit))) : bare
}
