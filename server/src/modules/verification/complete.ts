import { opensWithCode, withoutStrings } from './code-faults.ts'
import { doubt, type Finding, failed, passed } from './finding.ts'
import { numberOfWord } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { plainText, type ReadText, sentencesOf, splitFences, trimMarks, wordsOf } from './text.ts'
import { rankOf } from './word-meaning.ts'

const OPEN_ENDED = new Set(
  'and or but the a an of to in for with is are was were be should would could must shall which who that whose while because although unless if as at by from on into than my your our their its every und oder aber der die das ein eine einen dem den mit für von zu ist sind dass weil wenn et ou mais le la les un une de des du pour avec est sont que qui y o pero el los las una del para con es son que e ma il lo gli di per con è sono che mas os as um uma do da para com é são en of maar de het een van voor met is zijn dat och eller att en ett som'.split(
    ' ',
  ),
)

/** "he'd", "they're" */
const CONTRACTED = /^(?:i|you|he|she|it|we|they|there)'(?:d|ll|ve|re|m|s)$/

/** Words of these may end a clause that began with one of `TAKES_UP`: "a time that they can live with", "weil es kalt ist". */
const STRANDED = new Set(
  'of to in for with at by from on into is are was were be should would could must as that mit zu von ist sind is zijn van voor met est es son è sono é são'.split(
    ' ',
  ),
)
const TAKES_UP = new Set(
  'that which who whom whose what where when how why nothing something anything everything someone anyone everyone somebody anybody everybody somewhere anywhere nowhere wer wo wie dass weil wenn ob der das dem den womit wovon que qui dont où quien donde che chi dove dat wat wie waar als omdat'.split(
    ' ',
  ),
)

/** First words of a sentence that cannot be the whole of it, nor a name or a greeting with up to two more. */
const BEGINS = new Set(
  'the a an each every some most all many another this these those its their his her our it he she they there if when while because although since as after before but in on at by from for to of der die das ein eine diese dieser wenn weil obwohl er sie es wir aber in im auf bei le la les un une ce cette ces il elle ils elles si quand mais dans el los las una per para pour für este esta si cuando pero en lo gli questo questa se quando ma o os as um uma'.split(
    ' ',
  ),
)

/** These open a clause that another one follows. */
const OPENS_CLAUSE = new Set(
  'if when while because although since once falls wenn weil obwohl sobald bevor nachdem si quand lorsque cuando aunque se quando indien wanneer'.split(
    ' ',
  ),
)

const WANTS_OPEN =
  /\b(?:never|not|doesn't|don't|can't|cannot|forg[eo]ts? to) (?:\w{1,10} )?finish\w{0,3}\b|\bunfinished\b|\binterrupt\w{0,4}\b|\b(?:trail|break|cut)(?:s|ting|ing)? (?:\w{1,10} )?off\b|\bmid[- ]?sentence\b|\bcliffhanger\b/i

const STOPS_BY_ORDER =
  /\b(?:stop|end|break off|cut off)\w{0,3} (?:it )?(?:in the middle of|mid-?) ?(?:an? |the )?(?:sentence|word|line)\b|\bstop\w{0,3}\b[^.\n]{0,30}\bbefore the (?:punchline|end)\b/i

/** An answer that stops in the middle: an open fence, bracket or quotation, or a last sentence without an end. */
export function checkComplete(task: ReadTask, output: ReadText, finishedEarly: boolean): Finding {
  if (finishedEarly) return failed('The model stopped at its limit of length.')
  const end = task.is.template && /_{3,}\s*$/.test(output.raw.slice(-40)) ? passed : findEnd(task, output)
  // "A joke about someone who never finishes" may stop on purpose.
  const mayBeOpen = STOPS_BY_ORDER.test(task.full.raw) || (isPlayful(task) && WANTS_OPEN.test(task.full.raw))
  return mayBeOpen ? doubt(end) : end
}

const isPlayful = (task: ReadTask) => task.is.creative || task.agentId.startsWith('comedian')

function findEnd(task: ReadTask, output: ReadText): Finding {
  const text = output.raw.trimEnd()
  if (splitFences(text).open) return failed('Its code block does not end.')
  if (/^[[{]/.test(text) && /["\w]\s*:|^\[/.test(text) && !isBalanced(text)) return failed('Its JSON does not end.')
  const lastLine = text.slice(text.lastIndexOf('\n') + 1).trim()
  if (isTableCut(output)) return failed('Its table stops in the middle of a row.')
  const promised = findPromise(output)
  if (promised) return failed(promised)
  const opensBold = /^(?:\d{1,2}[.)] |[-*•] )?\*\*[^*]{1,60}$/.test(lastLine)
  if (opensBold && output.lines.slice(0, -1).some((line) => /\*\*[^*]{1,120}\*\*/.test(line)))
    return failed('Its last heading does not end.')
  if (isQuoteOpen(output.lines, lastLine)) return failed('Its last quotation does not end.')
  if (!text.includes('```') && opensWithCode(text) && !isEven(text) && !isEven(withoutStrings(text, '')))
    return failed('Its code does not end.')
  if (endsWithHeading(output)) {
    const fault = failed('Its last heading has no text.')
    // A line in bold may be the conclusion itself.
    const isNamed = !task.is.decision && task.full.raw.toLowerCase().includes(plainText(lastLine))
    const isPlain = lastLine.startsWith('#') || STEP.test(lastLine) || LAST_PART.test(lastLine) || isNamed
    return isPlain ? fault : doubt(fault)
  }
  if (lastLine === '' || lastLine.startsWith('|') || /^[`#>]/.test(lastLine) || lastLine.startsWith('```'))
    return passed
  if (/^(?:\d{1,2}[.)]|[-*•–])$/.test(lastLine) && output.lines.length >= 3) return failed('Its last item is empty.')
  const body = trimMarks(lastLine)
  const isCutRow =
    /(?:,[^,\n]{0,80}){2},$/.test(body) && !output.lines.slice(0, -1).some((line) => line.trim().endsWith(','))
  if (/[\p{L}\p{N}],$/u.test(body) && (body.split(' ').length > 2 || isCutRow) && !CLOSING.test(body))
    return failed('It ends with a comma.')
  // The last key of YAML may be empty.
  const keys = output.lines.filter((line) => /^(?:- )?[\w.-]{1,40}:(?: |$)/.test(line)).length
  if (task.agentId.startsWith('coder') && /^[\w.-]{1,40}:$/.test(body) && keys >= 3) return passed
  const isOneLine = /\b(?:only|just) (?:the )?(?:\w{2,12} )?lines?\b/i.test(task.request) && output.lines.length === 1
  if (/[([{–—:−+=×&/-]$/.test(body) && output.words.length > 5 && !isOwnEnd(body) && !isOneLine)
    return body.endsWith(':') && output.lines.length < 2 && output.words.length < 8
      ? passed
      : failed('It stops before its end.')
  if (isItemCutAtFigure(output.lines, body) || isItemCutAtName(output.lines, body))
    return failed('Its last item has no end.')
  // "libèrent de l'"
  if (/\p{Ll} (?:[ldnsjcmt]|qu|dell|nell|all|un)['’]$/u.test(body)) return failed('It stops before its end.')
  if (/[.!?。！？…؟।"”“»«’')\]}%°$€£>」』）】\p{N}]$/u.test(body) || /\p{Extended_Pictographic}\ufe0f?$/u.test(body))
    return passed
  if (/^(?:https?:|www\.|[#@]\p{L})|\w@\w/u.test(body.slice(body.lastIndexOf(' ') + 1).slice(0, 200))) return passed
  const sentence = sentencesOf(body).at(-1) ?? body
  // "*prints forty pages*": what somebody does in a dialogue
  if (/(?:^|[ :])[*_](?![*_])[^*_\n]{2,80}[*_]$/.test(lastLine) && isPlayful(task)) return passed
  if (isWordCut(task, output, body)) return failed('It stops in the middle of a word.')
  const words = wordsOf(sentence)
  const last = words.at(-1) ?? ''
  // Lines without full stops may be a verse or code; items are neither.
  const isVerse =
    output.lines.length >= 3 &&
    !output.lines.slice(0, -1).some((line) => /[.!?。！？]$/u.test(line)) &&
    !output.lines.some((line) => LIST_ITEM.test(line))
  const least = output.lines.length > 1 || sentence !== body ? 2 : 4
  if (
    !isVerse &&
    words.length >= least &&
    (OPEN_ENDED.has(last) || CONTRACTED.test(last) || /\b(?:and|or|with|has|have) no$/.test(sentence)) &&
    // "i, e, a, e" lists letters.
    !words.every(({ length }) => length === 1) &&
    !/ (?:(?:now|then|here|so|later|early|further|go|carry|move|hold|come|keep|pass|and) on|opt in|log in|sign in|drop off)$/.test(
      sentence,
    ) &&
    /^(?:I(?=['’]))?[\p{Ll}'’]+$/u.test(sentence.split(/\s+/).at(-1) ?? '')
  )
    return isSingleLine(task, output) || isStranded(output, words)
      ? doubt(failed('Its last sentence has no end.'))
      : failed('Its last sentence has no end.')
  // Jokes and one-liners may leave out their last full stop; a monologue may not.
  const isItem = LIST_ITEM.test(lastLine)
  const isLoose = !isItem && output.words.length < (task.agentId.startsWith('comedian') ? 50 : 25)
  // Words that the task gives for the end are no beginning: "signed with The people upstairs".
  const isGiven = words.length >= 2 && task.full.raw.toLowerCase().includes(sentence.toLowerCase())
  if ((SIGNATURE.test(sentence) || isGiven) && words.length <= 8) return passed
  if (isVerseCut(task, output, words)) return failed('Its last line has no end.')
  const end = endsUnlikeTheRest(output, sentence, words) ? failed('Its last sentence has no end.') : passed
  // Subject lines and titles end without a full stop, after a question too.
  return isLoose || (isItem && TITLES.test(task.request) && words.length <= 10) ? doubt(end) : end
}

const TITLES =
  /\b(?:subject lines?|headlines?|titles?|slogans?|taglines?|captions?|betreffzeilen?|überschriften|titres?|titoli|títulos)\b/i

/** A poem whose lines have a mark at their ends, but for the last one. */
function isVerseCut(task: ReadTask, output: ReadText, words: readonly string[]): boolean {
  const before = output.lines.slice(0, -1)
  const text = output.raw.trimEnd()
  const isSigned = /\n[ \t]{0,20}$/.test(text.slice(0, Math.max(0, text.lastIndexOf('\n'))))
  return (
    isPlayful(task) &&
    before.length >= 5 &&
    words.length >= 2 &&
    !isSigned &&
    output.lines.every((line) => wordsOf(line).length <= 14) &&
    before.filter((line) => /[.!?,;:…—–"”»]$/u.test(trimMarks(line))).length * 3 >= before.length * 2
  )
}

/** "An end time that the neighbours can live with", in a text without full stops. */
function isStranded(output: ReadText, words: readonly string[]): boolean {
  if (!STRANDED.has(words.at(-1)!)) return false
  const isVerb = /^(?:is|are|was|were|be)$/.test(words.at(-1)!)
  const isShort = output.words.length < 25 && !isVerb
  const before = words.slice(0, -2)
  // "the neighbour you want us to leave it with"
  const isTakenUp =
    before.some((word) => TAKES_UP.has(word)) ||
    (LIST_ITEM.test(output.lines.at(-1)!) && before.some((word) => /^(?:i|you|we|they)$/.test(word))) ||
    /\b(?:the|an?) [a-z]{2,30} (?:i|you|we|they) /.test(before.join(' ').slice(-400))
  const ends = (sentence: string) => /\p{L}[.!?。！？]["”’)]{0,4}$/u.test(trimMarks(sentence))
  return isTakenUp && (isShort || !sentencesOf(output.raw.trimEnd()).some(ends))
}

/** Signs that belong to what they end: "C++", "50+", a path, Base64, ":(", Morse, a rule, `-exec gzip {} +`. */
function isOwnEnd(line: string): boolean {
  const last = line.slice(line.lastIndexOf(' ') + 1).slice(-300)
  return (
    /[\p{L}\p{N}+]\+$|^[:;=][-']?[([]$|[A-Za-z\d+/]{6}={1,2}$|^:\w{1,30}:$/u.test(last) ||
    (last.endsWith('/') && /^(?:[~.]{0,2}\/|\w{1,10}:)|\/./.test(last)) ||
    /^[-–—=_~*.·/|\s]{3,300}$/.test(line) ||
    line.endsWith('{} +') ||
    // A command that ends with the standard input or in the background.
    (/\s[-&]$/.test(line) && /[|>]|\s-{1,2}[A-Za-z]/.test(line))
  )
}

/** "Bread worth getting up for" */
const isSingleLine = (task: ReadTask, output: ReadText) =>
  output.lines.length === 1 &&
  output.words.length <= 14 &&
  (!output.raw.includes(',') || STRANDED.has(output.words.at(-1)!)) &&
  (task.is.creative || /\b(?:titles?|headlines?|motto|names?|subject line)\b/i.test(task.request))

/** "**Week 2:** …" */
const LABELLED_LINE = /^\*{0,2}\p{L}[\p{L}\d ]{1,30}:\*{0,2}\s/u
const LIST_ITEM = /^(?:\d{1,3}[.)]|\(\d{1,2}\)|[-*•–])\s/

/** "4. Hold the button for 10", where each item before it ends with a full stop. */
function isItemCutAtFigure(lines: readonly string[], last: string): boolean {
  const items = lines.slice(0, -1).filter((line) => LIST_ITEM.test(line))
  return (
    LIST_ITEM.test(last) &&
    /\p{Ll}{2} \d{1,3}(?:[.,]\d)?$/u.test(last) &&
    !last.includes(':') &&
    items.length >= 2 &&
    items.every((line) => /[.!?]$/.test(trimMarks(line)))
  )
}

/** "4. Madag", where each of the ones before has a dash or a colon and more behind it. */
function isItemCutAtName(lines: readonly string[], last: string): boolean {
  const items = lines.slice(0, -1).filter((line) => /^\d{1,2}[.)] /.test(line))
  return (
    /^\d{1,2}[.)] \S{2,20}$/.test(last) &&
    items.length >= 3 &&
    [' – ', ' - ', ': '].some((mark) => items.every((line) => line.includes(mark)))
  )
}

const HEADING = /^(?:#{1,6}\s.{2,80}|\*\*[^*]{2,80}\*\*:?)$/
const LAST_PART =
  /^\*\*(?:conclusion|recommendation|summary|next steps|risks?|threats|outlook|verdict|cons|fazit|empfehlung|risiken|ausblick|conclusión|recomendación|conclusioni?|recommandation|risques|riesgos)\*\*:?$/i
const STEP = /^\*\*(?:step|phase|part|week|month|day|schritt|woche|teil|étape|semaine|paso|semana|fase|passo) \d/i

/** The last line is a heading like those before it, each of which has text. */
function endsWithHeading({ lines }: ReadText): boolean {
  const last = lines.at(-1) ?? ''
  // "**Total: 45**" says something itself.
  if (!HEADING.test(last) || (!STEP.test(last) && (/:./.test(last) || (!last.startsWith('#') && /\d/.test(last)))))
    return false
  const headings = lines.filter((line) => HEADING.test(line) && line[0] === last[0])
  const withText = lines.filter(
    (line, index) => HEADING.test(line) && index + 1 < lines.length && !HEADING.test(lines[index + 1]!),
  )
  return (
    headings.length >= 2 && headings.indexOf(last) === headings.length - 1 && withText.length >= headings.length - 1
  )
}

const CLOSING =
  /^(?:kind|best|warm|many|with|yours|sincerely|regards|cheers|thanks|thank you|love|mit|viele|liebe|herzliche|cordialement|bien|saludos|un saludo|atentamente|cordiali|distinti|atenciosamente|abraços|met|z poważ|pozdraw|saygı|с уваж|your|ihr|votre|su|the|hartelijke|vriendelijke|groet|hälsningar|hilsen|terveisin|üdvözlettel|amicalement|bises|abrazos|baci|un abbraccio)\b/iu

/** "Bien cordialement, le service client", "Ihr Team der Praxis Dr. Vogt", "Your Nordlicht team" */
const SIGNATURE =
  /^(?:kind|best|all (?:the|my) best|all my love|lots of love|take care|see you|warm|warmest|many|sincerely|yours|regards|cheers|thanks|thank you|love|mit (?:freundlich|besten|lieben|herzlich)\p{L}{0,3}|viele|liebe|herzliche|beste|freundliche|cordialement|bien (?:cordialement|à vous|à toi)|avec nos|saludos|un (?:cordial )?saludo|atentamente|cordiali|distinti|un caro|atenciosamente|com os|abraços|met vriendelijke|z poważ|pozdraw|saygı|с уваж|hartelijke|vriendelijke|groet|hälsningar|hilsen|terveisin|üdvözlettel|amicalement|bises|abrazos|baci|un abbraccio|مع)(?!\p{L})|^(?:the|your|ihr|euer|votre|su|le|l'|el|il|la|das|uw|het|din|ditt|vårt|seu|a|o)\b.{0,40}?(?:team|service|support|crew|staff|équipe|equipo|kundendienst|kundenservice|squadra|servizio|servicio|atendimento|equipe|office|management|direction|dirección|direzione)(?!\p{L})/iu

/** A last sentence without a full stop, where the sentences or the items before it have one. */
const CLAUSE = /\b(?:is|are|was|were|has|have|will|can|must|should|may|ist|sind|wird|est|sont)\b/

function endsUnlikeTheRest(output: ReadText, sentence: string, words: readonly string[]): boolean {
  const markerOf = (line: string) => (/^\d{1,3}[.)]\s/.test(line) ? '1' : /^(?:[-*•–]\s)/.test(line) ? '-' : '')
  const ends = (line: string) => /[.!?。！？]["”’)]{0,4}$/u.test(trimMarks(line))
  const before = output.lines.slice(0, -1)
  const lastLine = output.lines.at(-1) ?? ''
  const marker = markerOf(lastLine)
  // "Boil it. Cook until it": a sentence that ends stands before it in the same line.
  const inLine = sentencesOf(trimMarks(lastLine.replace(/^\d{1,3}[.)]\s/, '')))
  const isSecond = inLine.length >= 2 && ends(inLine.at(-2)!) && /^\p{Lu}/u.test(inLine.at(-1)!)
  if (marker) {
    const items = before.filter((line) => markerOf(line) === marker)
    return (
      (items.length === 0 && words.length >= 8 && before.filter(ends).length >= 3) ||
      (items.length >= 1 && items.every(ends) && words.length >= 3) ||
      (items.length >= (OPEN_ENDED.has(words.at(-1)!) ? 1 : 3) && items.every(ends) && words.length >= 1) ||
      (isSecond && words.length >= 3 && items.some(ends)) ||
      // "3. Political", where the ones before are "1. Trade: it shrank."
      (items.length >= 2 && !lastLine.includes(':') && items.every((line) => ends(line) && line.includes(': ')))
    )
  }
  const sentences = sentencesOf(output.raw.trimEnd())
  const ended = sentences.filter(ends).length
  if (lastLine === sentence && before.length > 0) {
    // Verses and signatures have lines of their own.
    const endsSentence = (line: string) => /[.!?。！？…:;,"”»)*|]$/u.test(trimMarks(line))
    const isClause = words.length >= 5 && CLAUSE.test(sentence)
    if (
      (words.length >= 9 || (isClause && ended >= 4)) &&
      ended >= 2 &&
      before.filter(endsSentence).length * 3 >= before.length * 2
    )
      return true
    // "**Cons:** …." in each line, and the last one without an end.
    const labelled = before.filter((line) => LABELLED_LINE.test(line))
    return (
      LABELLED_LINE.test(lastLine) &&
      labelled.length >= (words.length >= 9 ? 1 : 2) &&
      labelled.every(ends) &&
      words.length >= (labelled.length >= 5 ? 1 : 4)
    )
  }
  // Without spaces a sentence is a few long words.
  const isLong =
    words.length >= 5 ||
    (words.length >= 4 && ended >= 2 && !CLOSING.test(sentence) && !sentence.includes(',')) ||
    (/[\p{Script=Han}\p{Script=Hiragana}]/u.test(sentence) && sentence.length >= 8)
  // "He doesn't find his way. The basement"
  const isBegun = isSecond && ended >= 2 && words.length <= 3 && hasBegun(inLine.at(-1)!, words[0]!)
  return isBegun || (isLong && ended >= 1)
}

/** "The basement", "Falls Sie noch", but not "The Kranz family". */
const hasBegun = (sentence: string, first: string) =>
  OPENS_CLAUSE.has(first) ||
  CONTRACTED.test(first.replace('’', "'")) ||
  (BEGINS.has(first) && !/\s\P{Ll}/u.test(sentence))

/** The last word is the beginning of a longer one of the task, or, in an English text, of none at all. */
function isWordCut(task: ReadTask, output: ReadText, body: string): boolean {
  const last = /(?<=[\s(])\p{Ll}[\p{Ll}]{1,20}$/u.exec(body.slice(-40))?.[0]
  if (/^\d{1,3}[.)] \p{Lu}$/u.test(body) && output.lines.length >= 3) return true
  // "6. Price t"
  if (/^\d{1,3}[.)] .{0,200}\p{L}{3} [f-hj-mo-wz]$/u.test(body) && output.lines.length >= 3) return true
  if (!last || output.words.length < 4) return false
  const others = new Set([...task.full.words, ...output.words.slice(0, -1)])
  if (others.has(last)) return false
  const isBeginning = [...others].some((word) => word.length >= last.length + 2 && word.startsWith(last))
  if (
    isBeginning &&
    last.length >= 3 &&
    (rankOf(last) === undefined || output.words.length >= 12) &&
    !isStemOf(last, others)
  )
    return true
  const isEnglish = output.words.filter((word) => rankOf(word) !== undefined).length >= output.words.length * 0.75
  return (
    isEnglish && last.length <= 2 && /^[a-z]+$/.test(last) && rankOf(last) === undefined && !ABBREVIATIONS.has(last)
  )
}

const ABBREVIATIONS = new Set(
  'kg km cm mm ml mb gb tb kb ms hr hrs min sec pm am eur usd gbp sql css php api vat etc pcs px rpm mph kwh kw ha lbs oz ft yd js ts py sh'.split(
    ' ',
  ),
)

/** "run" of "running" is a word of its own. */
const isStemOf = (last: string, words: ReadonlySet<string>) =>
  [
    's',
    'es',
    'd',
    'ed',
    'r',
    'er',
    'ing',
    'ly',
    'n',
    'en',
    'e',
    'ment',
    'ion',
    'al',
    'ty',
    'ity',
    'y',
    'ful',
    'less',
    'ness',
    'or',
    'st',
    'est',
    'able',
    'te',
    'ten',
    'ung',
    'ern',
    'em',
  ].some((ending) => words.has(`${last}${ending}`)) || rankOf(last) !== undefined

const UNITS =
  /^(?:days?|weeks?|months?|years?|hours?|minutes?|seconds?|people|persons?|users?|customers?|percent|euros?|dollars?|times|items?|orders?|rooms?|units?|members?|employees|kg|km|words|sentences|tage|wochen|monate|jahre|stunden|personen|jours|semaines|mois|ans|días|semanas|meses|años)$/

/** "Four duties:" and then a list of three. */
function findPromise(output: ReadText): string | undefined {
  const isItem = (line: string) => /^(?:[-*•–]|\d{1,2}[.)])\s/.test(line)
  const isNumbered = (line: string) => /^\d{1,2}[.)]\s/.test(line)
  const lead = output.lines.findLastIndex((line) => /[:：]\*{0,2}$/.test(line) && !isItem(line))
  if (lead < 0) return undefined
  const items = output.lines.slice(lead + 1)
  if (items.length < 1 || !items.every(isItem) || !items.every((line) => isNumbered(line) === isNumbered(items[0]!)))
    return undefined
  const sentence = sentencesOf(output.lines[lead]!).at(-1) ?? ''
  const words = wordsOf(sentence)
  const counts = words.flatMap((word, index) => {
    const count = /^\d{1,2}$/.test(word) ? Number(word) : numberOfWord(word)
    const next = words.slice(index + 1, index + 4)
    const isCounted =
      next.some((noun) => /\p{L}{3}(?:s|en|er|e|i)$/u.test(noun)) && !next.slice(0, 2).some((noun) => UNITS.test(noun))
    return count !== undefined && count >= 2 && count <= 12 && isCounted ? [count] : []
  })
  return counts.length === 1 &&
    items.length < counts[0]! &&
    !/\b(?:of|von|sur|de|di|from|among|for|für|pour|para|per)\b/i.test(sentence)
    ? `It announces ${counts[0]} and gives ${items.length}.`
    : undefined
}

/** The last row of a table has fewer cells than its head. */
function isTableCut({ lines }: ReadText): boolean {
  const last = lines.at(-1) ?? ''
  const rows = lines.filter((line) => line.startsWith('|'))
  if (!last.startsWith('|') || rows.length < 3) return false
  const cells = (line: string) => line.replace(/\|$/, '').split('|').length
  return cells(last) < cells(rows[0]!) || !last.endsWith('|')
}

const isQuoteOpen = (lines: readonly string[], last: string) =>
  (last.match(/"/g)?.length ?? 0) % 2 === 1 &&
  lines.slice(0, -1).every((line) => (line.match(/"/g)?.length ?? 0) % 2 === 0) &&
  !/\d"/.test(last) &&
  !/[.!?"]$/.test(last)

/** As many brackets are closed as are opened. */
function isEven(text: string): boolean {
  let depth = 0
  for (const character of text) {
    if (character === '(' || character === '{' || character === '[') depth++
    else if (character === ')' || character === '}' || character === ']') depth--
  }
  return depth <= 0
}

function isBalanced(text: string): boolean {
  let depth = 0
  let isString = false
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!
    if (isString) {
      if (character === '\\') i++
      else if (character === '"') isString = false
    } else if (character === '"') isString = true
    else if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
  }
  return depth <= 0 && !isString
}
