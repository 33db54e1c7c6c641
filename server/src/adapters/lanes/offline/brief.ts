import { spendSteps } from '../../../platform/step-budget.ts'
import { splitSentences, splitWords, trimEndOf } from './text.ts'

/** A task, split into the instruction and the material it is about. */
export type Brief = {
  instruction: string
  material: string
  fences: readonly Fence[]
  /** Memories of the session. */
  context: readonly string[]
  task: string
  format: OutputFormat
}

export type Fence = { language: string; code: string }

/** The output format the caller asked for. */
export type OutputFormat = {
  form: 'markdown' | 'json' | 'list'
  items: number | undefined
  maxWords: number | undefined
}

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

/** Control characters and bidirectional overrides, which are removed from every task. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: matching control characters is the purpose.
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** Splits a task into instruction and material. In doubt, everything is the instruction. */
export function readBrief(task: string, context: readonly string[] = []): Brief {
  spendSteps(task.length)
  const cleanTask = task.replace(/\r\n?/g, '\n').replace(CONTROL_CHARACTERS, '').trim()
  const fences = extractFences(cleanTask)
  const { instruction, material } = fences.length > 0 ? splitFenced(cleanTask, fences) : splitPlain(cleanTask)
  const format = readOutputFormat(instruction || cleanTask)
  // A limit of words often stands at the end, after what the text is to say.
  const maxWords =
    format.maxWords ?? (fences.length === 0 ? readMaxWords(cleanTask.slice(-200).toLowerCase()) : undefined)
  return { instruction, material, fences, context, task: cleanTask, format: { ...format, maxWords } }
}

function extractFences(text: string): Fence[] {
  const fences: Fence[] = []
  const lines = text.split('\n')
  let openFence: { language: string; lines: string[] } | undefined
  for (const line of lines) {
    const fence = /^\s*```\s*([\w+#.-]*)/.exec(line)
    if (!fence) {
      openFence?.lines.push(line)
    } else if (openFence) {
      fences.push({ language: openFence.language, code: openFence.lines.join('\n') })
      openFence = undefined
    } else {
      openFence = { language: fence[1]!.toLowerCase(), lines: [] }
    }
    if (fences.length >= 10) break
  }
  if (openFence && openFence.lines.length > 0)
    fences.push({ language: openFence.language, code: openFence.lines.join('\n') })
  return fences
}

function splitFenced(text: string, fences: readonly Fence[]) {
  let insideFence = false
  const outsideLines = text.split('\n').filter((line) => {
    const fence = /^\s*```/.test(line)
    if (fence) insideFence = !insideFence
    return !fence && !insideFence
  })
  return { instruction: outsideLines.join('\n').trim(), material: fences.map((fence) => fence.code).join('\n\n') }
}

type Parts = { instruction: string; material: string }

function splitPlain(text: string): Parts {
  spendSteps(text.length)
  const leadingData = splitLeadingData(text)
  if (leadingData) return leadingData
  const gapStart = text.search(/\n\s*\n/)
  if (gapStart > 0 && gapStart <= 600) {
    const head = text.slice(0, gapStart).trim()
    const remainder = text.slice(gapStart).trim()
    if (remainder.length >= 20) {
      return looksLikeCommand(head) || !looksLikeCommand(lastParagraph(remainder))
        ? { instruction: head, material: remainder }
        : {
            instruction: lastParagraph(remainder),
            material: text.slice(0, text.length - lastParagraph(remainder).length).trim(),
          }
    }
  }
  const colonAt = text.search(/:(\s|$)/)
  if (colonAt > 0 && colonAt <= 300 && isMaterial(text.slice(0, colonAt), text.slice(colonAt + 1))) {
    return { instruction: text.slice(0, colonAt).trim(), material: text.slice(colonAt + 1).trim() }
  }
  const lineEnd = text.indexOf('\n')
  if (lineEnd > 0 && lineEnd <= 300 && text.length - lineEnd > 12) {
    return { instruction: text.slice(0, lineEnd).trim(), material: text.slice(lineEnd + 1).trim() }
  }
  const quotation = /["“]([^"“”]{40,})["”]/.exec(text)
  if (quotation) return { instruction: text.replace(quotation[0], ' ').trim(), material: quotation[1]!.trim() }
  const sentences = splitSentences(text)
  if (sentences.length >= 3) {
    const first = sentences[0]!.text
    const last = sentences.at(-1)!.text
    if (looksLikeCommand(first))
      return { instruction: first, material: text.slice(text.indexOf(first) + first.length).trim() }
    if (looksLikeCommand(last)) return { instruction: last, material: text.slice(0, text.lastIndexOf(last)).trim() }
  }
  return { instruction: text, material: '' }
}

/** Material that comes before the instruction: JSON followed by a question, or a table with a header line. */
function splitLeadingData(text: string): Parts | undefined {
  if (/^[[{]/.test(text)) {
    const end = Math.max(text.lastIndexOf(']'), text.lastIndexOf('}')) + 1
    const remainder = text.slice(end).trim()
    return isJson(text.slice(0, end)) && remainder
      ? { instruction: remainder, material: text.slice(0, end) }
      : undefined
  }
  const lines = text.split('\n')
  const cells = (line: string | undefined) => line?.split(/[,;|\t]/).length ?? 0
  const width = cells(lines[0])
  if (width < 2 || cells(lines[1]) !== width || cells(lines[2]) !== width) return undefined
  const end = lines.findIndex((line) => cells(line) !== width)
  if (end < 0) return { instruction: '', material: text }
  const remainder = lines.slice(end).join('\n').trim()
  return remainder ? { instruction: remainder, material: lines.slice(0, end).join('\n') } : undefined
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Instructions that work on a text: what follows the colon is that text, however short. */
const TEXT_OPERATION =
  /\b(?:proofread|rewrite|rephrase|paraphrase|shorten|simplify|polish|edit|correct|improve|tighten|summari[sz]e|translate|shorter|clearer|formal|informal|turn|classify|triage|reply to|respond to|customer (?:says|writes|wrote))\b/i

/** A few words after a colon belong to the instruction; numbers, lines or a longer text are material. */
const isMaterial = (head: string, remainder: string) =>
  remainder.trim().length >= 50 ||
  /\d|\n/.test(remainder.trim()) ||
  (TEXT_OPERATION.test(head) && splitWords(remainder.slice(0, 200)).length >= 3)

const lastParagraph = (text: string) => text.slice(text.lastIndexOf('\n') + 1).trim()

/** A command starts with one of the command verbs, perhaps after "please" or "can you", or ends as a question. */
export function looksLikeCommand(sentence: string): boolean {
  const words = splitWords(sentence.slice(0, 200))
  const start = words.findIndex(
    (word) => !['please', 'can', 'could', 'you', 'would', 'kindly', 'now', 'then'].includes(word),
  )
  return COMMANDS.has(words[start] ?? '') || sentence.trimEnd().endsWith('?')
}

/**
 * Many tasks mention JSON without requesting it, like "why does my API return JSON with null fields". So a verb counts
 * only as an imperative at the start of a clause, and "as JSON" or "in JSON" only at the end of a clause.
 */
const asksForJson = (text: string) => JSON_COMMAND.test(text) || JSON_FORM.test(text)

const JSON_COMMAND =
  /(?:^|[.!?:;,(\n]\s{0,20}|\b(?:please|and|then|must|should|just|only) )(?:return|output|respond with|reply with|answer with|give me|produce)(?: (?:an?|the|only|valid|strict|plain|raw|(?:your |the )?(?:answer|result|output) as)){0,3} json\b/

const JSON_FORM =
  /\b(?:as|in|into)(?: (?:an?|only|valid|strict|plain|raw)){0,2} json\b(?=\s*(?:$|[.,;:!?)\n]|(?:only|format|please|with|object|array)\b))|\bjson only\b|\bonly json\b/

export function readOutputFormat(instruction: string): OutputFormat {
  const text = instruction.slice(0, 2000).toLowerCase()
  const json = asksForJson(text)
  const list = /\b(?:bullet(?:ed)?(?: point)?s?(?! notes)|numbered list|as a list|checklist)\b/.test(text)
  return { form: json ? 'json' : list ? 'list' : 'markdown', items: readCount(text), maxWords: readMaxWords(text) }
}

function readCount(text: string): number | undefined {
  const match =
    /\b(\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten)(?: [a-z-]+){0,2}? (?:jokes?|puns?|bullets?|points?|bullet points|items|takeaways|findings|ideas|options|tips|one-liners?|roasts?|headlines?|slogans?|taglines?|titles?|names|sentences|insights|facts|reasons|steps)\b/.exec(
      text,
    )
  const countText = match ? match[1]! : /\btop (\d{1,2})\b/.exec(text)?.[1]
  if (!countText) return undefined
  const count = NUMBER_WORDS.includes(countText) ? NUMBER_WORDS.indexOf(countText) + 1 : Number(countText)
  return count >= 1 && count <= MAX_ITEMS ? count : undefined
}

function readMaxWords(text: string): number | undefined {
  const match =
    /\b(?:under|below|within|at most|no more than|maximum(?: of)?|max|up to|fewer than|less than|in) (\d{1,4}) words?\b/.exec(
      text,
    ) ?? /\b(\d{1,4})[ -]words? (?:or less|or fewer|max|maximum|limit)\b/.exec(text)
  const words = match ? Number(match[1]) : 0
  return words >= 10 ? words : undefined
}

/** A trailing ", warm tone, about 80 words" describes the output, not the topic. */
const LENGTH_OR_TONE =
  /(?:,? ?\b(?:in|of|with|about|around|under|at most|up to|max(?:imum)?|no more than)? ?\b(?:an? )?(?:\d{1,4} (?:words?|sentences|lines)|[a-z]+ tone)\b)+[^a-z]*$/i

/** The topic of a task, for titles and drafts: the instruction without verb, polite words and output format. */
export function extractTopic(brief: Brief, maxLength = 80): string {
  const firstLine = (brief.instruction || brief.task).split('\n')[0]!.slice(0, 400)
  const aboutText = /\b(?:about|regarding|concerning|on the topic of|on the subject of)\s+(?!\d)(.{3,})$/i.exec(
    firstLine,
  )?.[1]
  const topic = (aboutText ?? firstLine)
    .replace(
      /^(?:(?:please|can you|could you|would you|i need you to|i want you to|(?:i|we) (?:need|want|would like)|i'd like|give me|help me(?: to)?|kindly|hi|hello|hey)[,\s]+){1,3}/i,
      '',
    )
    .replace(/^(?:to )?[a-z]+(?: me| us)? (?:an? |the |some |my |our |this |\d+ )?/i, (head) =>
      aboutText || !looksLikeCommand(head) ? head : '',
    )
    .replace(LENGTH_OR_TONE, '')
  const name = trimEndOf(topic, '.?!:,;', true)
  return name.length > maxLength ? name.slice(0, Math.max(20, name.lastIndexOf(' ', maxLength))) : name
}
