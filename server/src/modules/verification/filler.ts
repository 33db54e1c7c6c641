import { type Finding, failed, notApplicable, passed } from './finding.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, splitFences, wordsOf } from './text.ts'

/** Signs of a form that nobody filled in, without brackets around its slots. Each counts only where the task does not have it. */
const SIGNS: readonly RegExp[] = [
  // "#### − ####", "___ %", "18xx", "YYYY-MM-DD", "(Author, Year)"
  /(?<![#\w])#{2,6}(?![#\w ])|(?:^|[\s(=/−|])#{2,6}\s?(?=[%−+/)=|]|$)/m,
  /(?<!_)_{3,}(?!_)/,
  /\b(?:1\d|20)xx\b|\bXX[./-]XX\b|\bYYYY\b|\bMM[/-]DD\b|\bDD[./-]MM\b|\bTT\.MM\b|\bJJJJ\b|\bAAAA\b/,
  /\((?:author|autor|auteur)s?(?:,| et al\.?| and author)[^)\n]{0,20}\)|\bauthor (?:et al\.?|and author)|\bcitation needed\b|\bsource needed\b/i,
  // "your-host-here", "/path/to/your", "youruser", "Name Here", "valor aqui"
  /\byour[-_][a-z]{2,20}[-_]here\b|\byour ?(?:api|key|url|host|domain|token|user|e?-?mail|path|file|id|app|command|value)s?[-_ ]here\b|\/path\/to\/|\byour(?:user|name|host|password|company|domain|server|service)\b|\b(?:Name|Date|Title|Company|Text|City|Product|Price|Amount|Hobby|Age|Insert) Here\b/,
  /\b(?:valor|nombre|nome|percentual|fecha|data|texto|cantidad|producto|produto|importe) (?:aqu[ií]|a completar|por definir|a definir)\b|\b(?:hier|bitte) (?:einfügen|eintragen|ergänzen|einsetzen)\b|\b(?:name|datum|betrag|ort|text) (?:einfügen|eintragen|hier)\b|\bà (?:compléter|préciser|remplir|définir|insérer)\b|\bda (?:completare|inserire|definire)\b|\b(?:a|por) (?:completar|rellenar|preencher|insertar)\b|\bNom du client\b|\bIhr Name\b(?= hier|$)|\bskriv .{2,20} här\b/i,
  // "(adjective)", "(content)"
  /\((?:adjective|noun|verb|name|content|text|punchline|setup|description|details?|topic|title|number|date|place|example|company|product|amount|inhalt|nom|nombre|texte|texto)s?\)/i,
  /\b(?:description|details?|text|content|summary|analysis|results?|figures?|numbers?|more|rest|answer|explanation) to (?:follow|come|be added)\b|\(to follow\)|\binsert (?:conclusion|text|name|result|summary|joke|punchline|details?|number|figure)s?\b|\bfill in (?:here|yourself|later|below)\b|\badapt to your\b|\bfolgt (?:noch|später)\b/i,
  // code with the names of a manual
  /\b(?:table_name|column_?name|column[12]|your_table|my_table|some_table)\b|\bwhere condition\b|\byour_\w{2,20}\b/i,
]

const LATIN = new Set(
  'lorem ipsum dolor amet consectetur adipiscing elit vestibulum luctus ultrices posuere cubilia curae donec velit neque auctor aliquam ullamcorper ligula faucibus sed tempor incididunt labore magna aliqua praesent sapien massa vivamus pellentesque nunc tincidunt mauris fermentum'.split(
    ' ',
  ),
)
/** "cause A, cause B": a general noun with a letter or a number and nothing about it. */
const NUMBERED =
  /\b(strength|weakness|opportunity|threat|cause|finding|item|point|reason|example|milestone|feature|benefit|competitor|company|argument|source|result|topic|section|fact|joke|idea|tip|risk|step|setup|event|product|person|study|option|grund|punkt|beispiel|raison|exemple|razón|ejemplo|motivo|esempio)s?[ _]?(?:[A-E]|[1-9]|one|two|three|four)\b(?=\s?(?:[.,;)]|$|and\b|und\b|et\b|y\b|was\b|is\b|\n|\())/gi

/** An answer that is still a form. */
export function findFiller(task: ReadTask, output: ReadText): Finding {
  if (task.is.template || task.isVague || task.lacksMaterial) return notApplicable
  const taskText = [task.full.raw, ...task.context].join('\n')
  const { prose } = splitFences(output.raw)
  const isCode = task.agentId.startsWith('coder')
  for (const [index, sign] of SIGNS.entries()) {
    const text = isCode ? output.raw : prose.replace(/`[^`\n]{1,300}`/g, ' ')
    const match = sign.exec(text)
    // Code may have empty names and headings of Markdown.
    if (!match || taskText.toLowerCase().includes(match[0].trim().toLowerCase())) continue
    if (isCode && (index < 2 || index === 6)) continue
    // 'YYYY/YY' in quotation marks is a format; a host or a name in them is a gap.
    if (isCode && index === 2 && /["'`]/.test(text[match.index - 1] ?? '')) continue
    // A path to be replaced is no fault where the task gives none.
    if (match[0].startsWith('/path') && !taskText.includes('/')) continue
    return failed('It leaves a place to be filled in.')
  }
  if (output.words.filter((word) => LATIN.has(word)).length >= 4 && !/\b(?:latin|lorem|ipsum)\b/i.test(taskText))
    return failed('It contains filler text.')
  const numbered = new Set(
    [...prose.matchAll(NUMBERED)]
      .map(([text]) => text.toLowerCase())
      .filter((text) => !taskText.toLowerCase().includes(text)),
  )
  const hasFigures = /\d/.test(prose.replaceAll(NUMBERED, ' '))
  if (
    numbered.size >= 2 &&
    !(hasFigures && output.lines.length >= 3) &&
    output.words.length <= 60 &&
    !task.agentId.startsWith('comedian')
  )
    return failed('It names its parts and says nothing about them.')
  return hasEmptyItems(output) ? failed('Its parts are empty.') : passed
}

/** Items that are all the same, and headings or labels with nothing after them. */
function hasEmptyItems(output: ReadText): boolean {
  const items = output.lines
    .map((line) => line.replace(/^(?:[-*•]|\d{1,2}[.)])\s/, '').toLowerCase())
    .filter((line) => !/^[|:\s-]+$/.test(line))
  const unique = new Set(items.map((line) => line.replace(/\b(?:one|two|three|four|five|\d{1,4}|[a-e])\b/g, '#')))
  const isVerse = items.some((line) => wordsOf(line).length > 6)
  // Rows of years and figures differ in these alone.
  const hasWords = [...unique].some((line) => /\p{L}{2}/u.test(line)) && !items.every((line) => /\d{2}/.test(line))
  if (items.length >= 3 && unique.size === 1 && hasWords && !isVerse && items[0]!.length > 2) return true
  const labels = items.filter((line) =>
    /^[\p{L}][\p{L} ]{1,30}:\s?(?:\.{3}|…|-|–|n\/a|tbd|text\.?|x+)?$/iu.test(line),
  ).length
  if (labels >= 3 && labels === items.length) return true
  const stubs =
    output.raw.match(/\b\p{L}{3,15}(?: \d)?: text\b|\bsetup about \p{L}{1,20}\. punchline\b/giu)?.length ?? 0
  return stubs >= 2
}
