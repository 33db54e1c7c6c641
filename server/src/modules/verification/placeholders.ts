import { opensWithCode } from './code-faults.ts'
import { type Finding, failed, notApplicable, passed } from './finding.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, splitFences, wordsOf } from './text.ts'

const SLOT_WORDS =
  /^(?:insert|enter|add|your|the|my|our|customer|client|company|recipient|sender|first|last|full|hiring|manager|name|date|day|time|product|price|amount|number|position|title|job|role|field|industry|city|address|email|e-mail|phone|link|url|x+|y+|placeholder|topic|subject|adjective|noun|verb|hobby|age|target|category|benefit|competitor|differentiator|need|feature|reason|details?|description|example|text|here|tbd|todo|business|brand|team|agent|order|tracking|month|year|event|location|venue|signature|value|metric|goal|audience|problem|solution|ihr|dein|vorname|nachname|datum|firma|unternehmen|ort|betrag|kunde|votre|prénom|nom|entreprise|société|tu|su|nombre|fecha|empresa|cliente|producto|precio|nome|data|azienda|prodotto|prezzo|seu|sua|naam|datum|bedrijf)$/iu

/** `[Your Name]`, `{{customer}}`, `<company>`, lorem ipsum, "your code here": an answer that is still to be filled in. */
export function findPlaceholders(task: ReadTask, output: ReadText): Finding {
  if (task.is.template) return notApplicable
  const { prose: text, blocks } = splitFences(output.raw)
  const prose = withoutCode(text)
  if (/\blorem ipsum\b/i.test(output.raw) && !/\blorem\b/i.test(task.full.raw))
    return failed('It contains filler text.')
  // Code without a fence around it is code all the same.
  const isBare = blocks.length === 0 && task.agentId.startsWith('coder') && opensWithCode(output.raw)
  for (const { code } of isBare ? [{ code: output.raw }] : blocks) {
    const fault = findCodePlaceholder(code, task)
    if (fault) return failed(fault)
  }
  if (/\b(?:TODO|FIXME)\b|\bINSERT (?!INTO\b)[A-Z]{3,20}\b/.test(prose) && !/\btodo\b/i.test(task.full.raw))
    return failed('It leaves a place to be filled in.')
  if (
    prose.length < 60 &&
    !(task.agentId.startsWith('coder') && /\d/.test(prose)) &&
    /^[-*#\d. ]{0,8}(?:\p{L}{1,20}: ?)?(?:tbd|todo|n\/a|\.{3}|…|-{1,5})[. ]{0,5}$/iu.test(prose.trim()) &&
    blocks.length === 0
  )
    return failed('It says that the answer is still to come.')
  const phrase = task.lacksMaterial || task.isVague ? undefined : PLACEHOLDER_PHRASE.exec(prose)?.[0]
  // Of code it is a word for what a query or a text field has.
  const isTerm = phrase?.toLowerCase() === 'placeholder' && task.agentId.startsWith('coder')
  // "Dates will be announced": the text given leaves it open.
  const isOpenThere =
    phrase !== undefined && task.full.raw.toLowerCase().includes(phrase.toLowerCase().replace(/^to be /, ''))
  if (phrase && !isTerm && !isOpenThere) return failed('It leaves a place to be filled in.')
  if (
    /(?<![\p{L}\d])(?:[XYZ]{1,3} ?%|[$€£] ?[XYZ]{1,4}(?![\p{L}\d])|X{2,}(?![\p{L}\d])|[XYZ] (?:days|weeks|months|years|units|euros|dollars|customers|percent)\b)/u.test(
      prose,
    ) &&
    !/(?<![\p{L}\d])(?:[XYZ]|X{2,})(?![\p{L}\d])/u.test(task.full.raw)
  )
    return failed('It has letters where figures belong.')
  if (/(?<=[^\n#][ $€£])#{2,4}(?=\s?[%€$£.,;)]|\s\p{Ll}|$)/mu.test(prose) && !task.full.raw.includes('##'))
    return failed('It has signs where figures belong.')
  if (hasSeveralGaps(prose, task.full.raw)) return failed('It leaves a place to be filled in.')
  const slots = findSlots(prose).filter((slot) => !task.full.raw.includes(slot))
  if (slots.length === 0) return passed
  return failed(`It leaves ${slots.length === 1 ? 'a slot' : `${slots.length} slots`} unfilled.`)
}

const GAPS: readonly (readonly [RegExp, number])[] = [
  [/(?<![\w_])__(?![\w_])/g, 2],
  [/^[-*•] (?:\.{3}|…)\s*$/gm, 2],
  [/<[a-z]{2,14} [a-z −-]{2,30}>/g, 2],
  [/\|\s{0,3}(?:\.{3}|…)\s{0,2}%?\s{0,3}(?=\|)/g, 3],
  [
    /（(?:姓名|名字|日期|公司名?称?|单位|货物名?称?|产品名?称?|名称|事件|金额|数量|地址|电话|时间|地点|职位|部门|氏名|会社名|日付|商品名|金額|住所)）/g,
    2,
  ],
  [/(?<![$\w`{])\{[a-z][a-z\d _]{2,30}\}(?!\})/g, 2],
  [/(?<=[\p{L}\d,.:;(€$£] ?)(?<![-*] |\[)\[[A-Z](?:[\w ]{0,30}\w)?\](?![([])/gu, 3],
]

/** "Hold __ meetings by __", "a {kind of reed} from {country}", a table of dots: several gaps of a kind that the task does not have. */
const hasSeveralGaps = (text: string, task: string) =>
  GAPS.some(([gap, least]) => (text.match(gap)?.length ?? 0) >= least && task.match(gap) === null)

const PLACEHOLDER_PHRASE =
  /\b(?:insert|add|put|enter|paste|place|type|write) (?:your |the |a |an |some )?[\p{L} ]{2,30} here\b|\b(?:text|content|answer|joke|code|summary|name|details?|description|introduction|conclusion|body|explanation|analysis|results?|data|image|list|sum|total|amount|figure|number|value|date|price|address|link|quote|punchline|title|table|example) (?:goes|comes|would go|to go|belongs) here\b|\byour (?:text|content|answer|name|message|company|code|logic) here\b|\b(?:this is (?:a |just a )?(?:sample |dummy )?|dummy )(?:placeholder|text|filler)\b|\bplaceholder\b|(?<!\b(?:has|have|had|needs?) )\bto be (?:determined|added|completed|filled(?: in)?|inserted|written|announced|decided|provided)\b(?! by\b)|\(add (?:an? |the |your |second |third |more |another )?(?:strength|weakness|rule|name|date|text|item|reason|step|point|detail|example|line|title|figure|number|price|link|sentence)s?\)|\((?:à (?:compléter|remplir|préciser)|da (?:completare|compilare|inserire)|(?:por|a) (?:completar|rellenar|preencher)|(?:noch |bitte )?(?:auszufüllen|ausfüllen|einzufügen|einfügen|ergänzen))[^)\n]{0,60}\)|\b(?:tbd|tbc|tba)\b|\bcoming soon\b|\(insert [^)\n]{2,60}\)|\((?:calculate|compute|describe [^)\n]{2,40} here|start date|company name|your name)\)|%[A-Z_]{3,30}%|\b(?:foo bar baz|blah blah|asdf|xxx+(?!\W{0,3}$)|etc\. etc\.)\b/iu

const STAGE =
  /^(?:(?:figure|fig|table|ref|footnote|source|note|sentences?|paragraph|line|page|section|chapter|row|step) \d|laughs?|laughter|applause|pause|beat|sighs?|sic|verse ?\d?|chorus|bridge|outro|intro|music|audience .{0,30}|drum ?roll|rimshot|mic drop|crowd .{0,30}|source|citation.{0,20}|note|edit|link|image|lacht|pausa|rires?|whispers?|dramatic .{0,30}|walks? .{0,30}|exit.{0,30}|enter.{0,30}|gasps?|smiles?|shrugs?|looks? .{0,30}|points? .{0,30})$/i

/** Prose without inline code and without lines that are indented as code. */
const withoutCode = (text: string) =>
  text
    .split('\n')
    .filter((line) => !/^(?: {4}|\t)\s{0,40}[^\s*•\d-]/.test(line))
    .join('\n')
    .replace(/`[^`\n]{1,300}`/g, ' ')

function findSlots(prose: string): string[] {
  const slots: string[] = []
  for (const match of prose.matchAll(
    /(?<![\p{L}\p{N}_)\]])\[([^\s[\]\n][^[\]\n]{1,60})\](?![([{+*?$])|\{\{([^{}\n]{1,60})\}\}|<([a-z][a-z _-]{2,30})>|(?<![$\w`{])\{([a-z][a-z _]{2,30})\}|_{4,}/giu,
  )) {
    const inner = match[1] ?? match[2] ?? match[3] ?? match[4]
    if (slots.length >= 50) break
    // `[p.number for p in ports]` and `["name", "date"]` are code.
    if (match[1] !== undefined && /^["'`]|\w\.\w|\bfor\b.{1,40}\bin\b/.test(match[1])) continue
    // A tag that is closed again is one of XML.
    if (match[3] !== undefined && prose.includes(`</${match[3]}>`)) continue
    // "[calc] %" and "$[amount]" stand where a figure belongs.
    const isFigure =
      match[1] !== undefined &&
      /^\p{L}{1,20}$/u.test(inner!) &&
      (/^ ?[%€$£]/.test(prose.slice(match.index + match[0].length, match.index + match[0].length + 2)) ||
        /[$€£] ?$/.test(prose.slice(Math.max(0, match.index - 2), match.index)))
    if (match[2] !== undefined || inner === undefined || isFigure) slots.push(match[0])
    else if (
      isSlot(inner, match[1] !== undefined) ||
      (/^\p{L}{3,20}$/u.test(inner) && prose.split(match[0]).length > 2)
    )
      slots.push(match[0])
  }
  return slots
}

const HTML =
  /^(?:a|abbr|article|b|body|br|button|code|dd|details|div|dl|dt|em|footer|form|h[1-6]|head|header|hr|html|i|img|input|label|li|link|main|meta|nav|ol|option|p|pre|script|section|select|small|span|strong|style|sub|summary|sup|svg|table|tbody|td|th|thead|title|tr|u|ul|video|t|string|number|any|unknown)$/i

function isSlot(inner: string, isBracket: boolean): boolean {
  if (/^[\d\s,.;:-]+$/.test(inner) || /^[ xX✓]$/.test(inner) || HTML.test(inner)) return false
  // "[A-Z]" and "[a-z0-9_]" are sets of letters.
  if (/(?<!\p{L})\p{L}-\p{L}(?!\p{L})|\\/u.test(inner)) return false
  const words = wordsOf(inner.replaceAll('_', ' '))
  if (words.length === 0 || words.length > 10 || STAGE.test(inner)) return false
  const hasSlotWord = words.some((word) => SLOT_WORDS.test(word))
  const isPhrase = words.length >= 2 && /^[\p{L}\s'’/-]+(?: \d)?$/u.test(inner)
  // "[PUNCHLINE]"
  const isShouted = /^[A-Z][A-Z _]{3,30}$/.test(inner)
  return isBracket ? hasSlotWord || isPhrase || isShouted : hasSlotWord
}

/** "the whole function", "in full", "I'll paste it as is" */
const WHOLE =
  /\b(?:full|complete|whole|entire|ganzen?|komplette[nrs]?|vollständige[nrs]?|complète|entière|completa|completo|intera|entera) (?:\w{1,20} )?(?:functions?|files?|code|scripts?|class(?:es)?|methods?|components?|modules?|program|query|listing|source|version|thing|funktion|datei|klasse|methode|skript|fonction|fichier|función|archivo|clase|funzione)\b|\bin full\b|\b(?:no|without) (?:omissions|elisions|ellips[ei]s|placeholders|abbreviations)\b|\b(?:don't|do not|never) (?:abbreviate|shorten|omit|leave (?:anything|parts?) out|skip (?:anything|parts?))\b|\b(?:ready to paste|copy[- ]paste|paste it (?:in )?(?:as is|straight|directly|back))\b/i
/** "// rest unchanged", "# same as before" */
const AS_BEFORE =
  /\b(?:as before|unchanged|(?:stays?|remains?) the same|same as (?:before|above|in the original)|omitted(?: for brevity)?|for brevity|wie (?:vorher|bisher|zuvor|oben)|unverändert|comme avant|igual que antes|sin cambios)\W{0,8}$/i
const OF_BEFORE =
  /^\W{1,6}(?:the |your |keep (?:the |your )?)?(?:rest|remainder|existing|remaining|other|previous|same|original|bestehende\w?|restliche\w?|übrige\w?)\b/i

/** Values to be replaced are what was asked for. */
const WANTS_DUMMIES = /\.env\.(?:example|sample|template|dist)\b|\b(?:no real|dummy|fake) values?\b/i

function findCodePlaceholder(code: string, task: ReadTask): string | undefined {
  if (WANTS_DUMMIES.test(task.full.raw)) return undefined
  const lines = code
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  const isComment = (line: string) => /^(?:#|\/\/|--|\/\*|\*|<!--|;|%)/.test(line)
  const isStub = (line: string) =>
    /\b(?:todo|fixme|your (?:\w{1,20} )?(?:code|logic) (?:goes )?here|code (?:goes )?here|logic (?:goes )?here|your (?:\w{1,20} ){1,2}goes here|replace me|placeholder|to be implemented|fill in|implement(?:ation)? (?:this|here|me|goes here|logic)|not implemented|rest of (?:the|your) code|add (?:your )?(?:code|logic) here)\b/i.test(
      line,
    )
  // "// ... loop over the points": a part that was left out, where the task gives no code that it could stand for.
  const isElision = (line: string) =>
    /^(?:#|\/\/|--|\/\*|<!--) ?(?:\.{3}|…) ?(?:\(?\p{L}|$|\*\/|-->)/u.test(line) ||
    /^(?:#|\/\/|--|\/\*) ?[<[{]{1,2}\p{L}[^<>[\]{}\n]{2,60} [^<>[\]{}\n]{2,60}[>\]}]{1,2}$/u.test(line) ||
    /^(?:#|\/\/|--|\/\*|<!--) ?(?:todo|fixme)\b.{0,20}\b(?:implement|write|add|fill|complete|finish|handle|code)/i.test(
      line,
    )
  const asksToWrite = !task.code && !/\btodo\b/i.test(task.full.raw)
  // "<your lint command here>" is the whole of a line.
  const isGap = (line: string) => /^<(?:your|insert|add|put|enter) [\w ]{2,40}>;?$/i.test(line)
  // "POSTGRES_DB: <db name here>", "- "<PORT>:8080""
  const gaps = new Set(
    code.match(/<(?:[\w ]{2,30} here|[A-Z][A-Z_]{2,20})>/g)?.filter((gap) => !task.full.raw.includes(gap)),
  )
  if (
    asksToWrite &&
    (gaps.size >= 2 || [...gaps].some((gap) => gap.endsWith(' here>'))) &&
    !/<\/|\bclass\b|::/.test(code)
  )
    return 'Its code leaves a part out.'
  if (asksToWrite && lines.some((line) => isGap(line) && !task.full.raw.includes(line)))
    return 'Its code leaves a part out.'
  const isOwnTodo = (line: string) =>
    /^(?:#|\/\/|--|\/\*|<!--) ?(?:todo|fixme)\b/i.test(line) && !task.full.raw.includes(line)
  if (!/\b(?:todo|fixme)\b/i.test(task.full.raw) && lines.some(isOwnTodo)) return 'Its code leaves a part out.'
  const wantsWhole = asksToWrite || WHOLE.test(task.full.raw)
  if (wantsWhole && lines.some((line) => isElision(line) && !task.full.raw.includes(line)))
    return 'Its code leaves a part out.'
  // "catch (e) { // existing error handling }": a comment is all that a block has.
  const isOnly = (at: number) =>
    /[{:]$|\b(?:then|do)$/.test(lines[at - 1] ?? '') && /^(?:[})]|end\b|fi\b|done\b|$)/.test(lines[at + 1] ?? '')
  if (
    wantsWhole &&
    lines.some(
      (line, at) =>
        isComment(line) &&
        (AS_BEFORE.test(line) || (OF_BEFORE.test(line) && isOnly(at))) &&
        !task.full.raw.includes(line),
    )
  )
    return 'Its code leaves a part out.'
  // "return true // TODO: check it": work that was wanted whole is left open.
  const wantsAll =
    asksToWrite || /\b(?:full|complete|whole|entire|finish|compilable|vollständig\w{0,2})\b/i.test(task.full.raw)
  const isOpen = (line: string) => {
    const start = line.search(/#|\/\/|--|\/\*|<!--/)
    return start >= 0 && isStub(line.slice(start)) && !task.full.raw.includes(line)
  }
  if (wantsAll && lines.some(isOpen)) return 'Its code leaves a part out.'
  const stubs = lines.filter((line) => isStub(line) && !task.full.raw.includes(line))
  const work = lines.filter(
    (line) =>
      !isComment(line) &&
      !/^(?:pass|\.\.\.|[{}()[\];]+|end|raise NotImplementedError.{0,80}|throw new Error.{0,80}|(?:def|function|class|func|fn|public|private|export|async)\b.{0,200})$/.test(
        line,
      ),
  )
  return stubs.length > 0 && work.length <= Math.max(1, stubs.length) ? 'Its code is still to be written.' : undefined
}
