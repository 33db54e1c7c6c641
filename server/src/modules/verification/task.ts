import { type DetectedLanguage, detectLanguage, languageNamed, languagesByStem, ownLanguageNamed } from './languages.ts'
import { quotedPassages, type ReadText, readText, splitFences, wordsOf } from './text.ts'

/** What a task wants, and the material it gives. Read once, before any check. */
export type ReadTask = {
  agentId: string
  full: ReadText
  /** The task without quoted passages, pasted rows and code. */
  request: string
  requestWords: readonly string[]
  /** Text that the task gives to be worked on: quotations, pasted lines, what follows a colon. */
  material: string
  code: string
  context: readonly string[]
  language: DetectedLanguage | undefined
  /** The language that the answer has to be in, where the task names one. */
  targetLanguage: string | undefined
  mentionsLanguage: boolean
  is: Readonly<Record<TaskKind, boolean>>
  /** So little is said that a question back is an answer. */
  isVague: boolean
  /** The task speaks of a text, a file or code that is not there. */
  lacksMaterial: boolean
}

type TaskKind = keyof typeof KINDS

const MAX_REQUEST = 3_000

const KINDS = {
  translation:
    /\b(?:(?!translators?\b)translat\w{0,8}\b(?! (?:office|agency|bureau|company|firm|business|team|industry|job|project))|übersetz\w{0,4}|tradui\w{0,6}|traduc\w{0,6}|traduz\w{0,6}|vertaal\w{0,4}|överfätt|översätt|how do you say|what is .{1,60} in (?:french|german|spanish|italian)|přelož\w{0,3}|prelož\w{0,3}|(?:prze)?tłumacz\w{0,2}|oversæt\w{0,2}|oversett\w{0,2}|käännä|fordíts\w{0,3}|çevir\w{0,3}|terjemahkan|prevedi\w{0,2}|isalin)|перевед\p{L}{0,5}|переклад\p{L}{0,5}|μετάφρασ\p{L}{0,4}|ترجم|dịch|अनुवाद|अंग्रेज़ी|преведи\p{L}{0,2}|תרגם|แปล|翻译|翻譯|訳し|訳して|번역|(?:^|\n)\s{0,3}(?:english|german|french|spanish|italian|portuguese|dutch) please\b/iu,
  summary:
    /\b(?:summari[sz]e|summary|sum up|tl;?dr|condense|shorten|zusammenfass\w{0,4}|fass\w{0,3} .{0,200}zusammen|résum\w{0,4}|resum\w{0,4}|riassum\w{0,4}|samenvat\w{0,4}|key points|in a nutshell)/i,
  extraction:
    /\b(?:according to|from the (?:text|passage|report|article|paragraph|notes?)|in the (?:text|passage|report|article|notes?)|what does the (?:text|report|passage|article)|quote|verbatim|word for word|extract|laut|selon|según|secondo|based (?:only )?on)\b/i,
  quotation:
    /\b(?:quote|verbatim|word for word|wörtlich|zitier\w{0,3}|mot pour mot|cita\w{0,3} (?:textual|literal))\b/i,
  proofreading:
    /\b(?:proof-?read|correct (?:the|any|all|my|this|these)?\s?(?:spelling|grammar|typos?|mistakes|errors|sentence|text)|fix (?:the |any |all |my )?(?:spelling|grammar|typos?)|korrigier\w{0,3}|corrige\w{0,3}|correggi)\b/i,
  questions:
    /\b(?:questions?|quiz|interview|survey|faqs?|fragen|frage|preguntas?|domande|perguntas?|vragen|riddles?|knock[- ]knock|what to ask|ask)\b/i,
  template:
    /\bvariables? in (?:\{|double|curly|square|brackets)|\b(?:merge (?:fields?|tags?)|template|placeholders?|boilerplate|mail[- ]merge|fill-in|vorlage|platzhalter|modèle|plantilla|modello|skeleton|stub|scaffold (?:an?|the|for|of|code)|form letter|mad[- ]libs?|cloze|(?:with|leave|fill\w{0,3}(?: in)?) (?:the |an? |\d )?(?:\w{1,12} )?(?:gaps?|blanks?)|leave .{1,30} (?:open|blank|empty)|to be filled|lücke\w{0,3})\b/i,
  creative:
    /\b(?:jokes?|puns?|roast|limericks?|haikus?|poems?|verses?|rhymes?|taglines?|slogans?|stor(?:y|ies)|one-liners?|lyrics|song|witze?|gedichte?|blagues?|poèmes?|chistes?|poemas?|barzellett\w|poesia|piadas?|stand-up|sketch|tweets?|captions?|names? for|funny|silly|humou?r\w{0,4}|banter|riddles?|metaphor|toast|novel|opening (?:line|scene)|dialogue|monologue|screenplay|card|condolences?|wishes|congratulat\w{1,6})\b/i,
  fix: /\bmake (?:it|this|that|the \w{1,20}) (?:safe|secure|work)\b|\b(?:close|free|release) .{1,40} even\b|\b(?:fix|debug|repair|correct|crash\w{0,3}|bug|error|broken|doesn'?t work|does not work|wrong|fails?|throws?|repariere|korrigiere|behebe|corrige|arregla|correggi)\b/i,
  decision:
    /\b(?:should (?:i|we)|which (?:is|one|option|vendor|plan)|recommend|choose|decide|versus|vs\.?|better|cheaper|prioriti[sz]e|soll(?:en|te)? (?:ich|wir))\b/i,
} as const

export function readTask(agentId: string, task: string, context: readonly string[]): ReadTask {
  const full = readText(task)
  const { prose, blocks } = splitFences(full.raw)
  const { request, material } = splitMaterial(prose)
  const requestWords = request === full.raw ? full.words : wordsOf(request)
  const code = [...blocks.map((block) => block.code), codeLinesOf(prose)].filter(Boolean).join('\n')
  const kinds = Object.fromEntries(
    Object.entries(KINDS).map(([kind, pattern]) => [kind, pattern.test(request)]),
  ) as ReadTask['is']
  // `French: "Please ring twice."`
  const isNamedOnly =
    material !== '' && requestWords.length <= 4 && requestWords.some((word) => languageNamed(word) !== undefined)
  const is = { ...kinds, translation: kinds.translation || isNamedOnly }
  const stems = languagesByStem(full.raw.slice(0, 2_000))
  const target =
    targetLanguageOf(requestWords, is.translation) ??
    ownLanguageNamed(request) ??
    languageOfCustomer(request, material) ??
    languageAtEnd(request) ??
    (is.translation && stems.length === 1 ? stems[0] : undefined)
  // "A 500, E 300": letters that name something are no words, nor are "%s" and "\\n".
  const withoutLabels = (text: string) => wordsOf(text.replace(/\b[A-Z](?=[ :=]{1,2}\d)|%[a-z]|\\[a-z]/g, ' '))
  const language = detectLanguage(withoutLabels(request))
  return {
    agentId,
    full,
    request,
    requestWords,
    material,
    code,
    context,
    language:
      language?.isSure || request === full.raw ? language : (detectLanguage(withoutLabels(full.raw)) ?? language),
    targetLanguage: target,
    mentionsLanguage: target !== undefined || is.translation || speaksOfLanguage(requestWords) || stems.length > 0,
    is,
    isVague: isVague(full, material, code),
    lacksMaterial: lacksMaterial(request, material, code, full),
  }
}

/** Quotations of three words and more, rows of data, and what follows a colon at the end of a line or of the request. */
function splitMaterial(text: string): { request: string; material: string } {
  const quotes = quotedPassages(text).filter((quote) => wordsOf(quote.text).length >= 3)
  const parts: string[] = []
  let request = ''
  let at = 0
  for (const quote of quotes) {
    request += `${text.slice(at, quote.start)} `
    parts.push(quote.text)
    at = quote.end
  }
  request += text.slice(at)
  const lines = request.split('\n')
  const [first = '', ...rest] = lines
  const colon = first.search(/[::](?=\s|$)/)
  if (rest.some((line) => line.trim()) && (lines.length > 3 || colon === first.trimEnd().length - 1)) {
    // A pasted text has its request in front of it, or after it in a line of its own.
    const last = rest.at(-1)!.trim()
    const isRequestLast =
      (last.endsWith('?') && rest.length > 2) ||
      (ORDER_LINE.test(last) && last.length <= 300 && rest.at(-2)?.trim() === '')
    parts.push((isRequestLast ? rest.slice(0, -1) : rest).join('\n'))
    request = isRequestLast ? `${first}\n${last}` : first
  } else if (colon > 0 && first.length - colon > 12 && parts.length === 0) {
    parts.push(first.slice(colon + 1), ...rest)
    // Both sides may ask: "Reply to Bo: his order ships on Monday."
    request = first
  }
  return { request: request.slice(0, MAX_REQUEST), material: parts.join('\n') }
}

/** "Reply in two sentences.", below a text and an empty line. */
const ORDER_LINE =
  /^(?:please |now |so |then |task: )?(?:summari[sz]e|sum up|write|reply|answer|respond|return|draft|keep it|explain|describe|rewrite|extract|convert|format|output|suggest|give me|list|at most|max\.? \d|no more than|under \d|exactly|in (?:\d|one|two|three) (?:words|sentences?|lines))\b/i

const CODE_LINE =
  /^\s*(?:def |class |function |const |let |var |import |from \w{1,40} import|return\b|if ?\(|for ?\(|while ?\(|#include|public |private |fn |func |select .{1,200} from |insert into |create table |print\(|console\.|async |await )|[;{}]\s*$|=>|^\s*\w{1,40} = \w[\w.]{0,60}\(.{0,200}\)$|^\s{2,}\S.{0,200}[)\];:]$/i

/** "Return the initials of …": a sentence that begins with a word of code. */
const PROSE_LINE =
  /^\s*(?:Return|Let|From|Class|Import|Select|Public|Private|Await|Async) [a-z]{1,20} [a-z]{1,20}\b[^{}=]{0,400}(?<!;)$/

const codeLinesOf = (text: string) => {
  const lines = text.split('\n')
  const code = lines.filter((line) => line.length < 400 && CODE_LINE.test(line) && !PROSE_LINE.test(line))
  const inline =
    text
      .match(
        /`[^`\n]{3,400}`|\b\w{1,20}\.execute\([^\n]{1,300}\)|\bprint\([^\n]{1,200}\)|\b\w{1,40}\(\[[^\n]{1,200}\]\)/g,
      )
      ?.slice(0, 20) ?? []
  return [...code, ...inline].join('\n')
}

const VAGUE_WORDS = new Set(
  'do it the thing this that please help me something anything test task hello hi hey there thanks thank you ok okay yes no x foo bar stuff now just can need want go start more again what why how run try make better improve fix change continue'.split(
    ' ',
  ),
)

const isVague = (full: ReadText, material: string, code: string) =>
  !material.trim() &&
  !code &&
  (full.words.length <= 2 ||
    full.words.filter((word) => !VAGUE_WORDS.has(word)).length <= 1 ||
    !looksLikeWords(full.words))

/** Keyboard noise has no vowels where words have them and no function words. */
const looksLikeWords = (words: readonly string[]) =>
  words.length > 4 ||
  detectLanguage(words) !== undefined ||
  words.some((word) => /\d|[\u0080-\uffff]/.test(word)) ||
  words.filter((word) => /[aeiouy]/.test(word) && !/[^aeiouy]{4}/.test(word)).length * 2 > words.length

const MISSING =
  /\b(?:attached|attachment|enclosed|uploaded|below(?! (?:freezing|zero|average|cost|par|ground|sea|the|an?|\d|[$€£]))|following|the (?:csv|file|dataset|spreadsheet|pdf|image|screenshot|snippet|attachment)|(?:this|these|my|(?<!\b(?:about|for) )our) (?:\w{1,20} )?(?:function|code|script|csv|file|data|dataset|spreadsheet|numbers?|figures|text|essay|article|paragraph|email|e-mail|letter|query|contract|document|pdf|report|class|program|component|regex|tweet|poem|message|ticket|log|sentence|config|cv|resume|draft|page|list|table|logos?|images?|photos?|pictures?|screenshots?|designs?|\d logos|\d (?:images|photos|designs|drafts))|from before|last time|as usual|same as|earlier|angehängt\w{0,2}|beigefügt\w{0,2}|folgende\w?|ci-joint\w?|adjunt\w|allegat\w|anex\w|it returns|(?:what|how) (?:does|did|do) the (?:study|paper|article|report|document|contract|survey|transcript|text|book) (?:say|find|conclude|show|mean|claim|argue)|mein\w? (?:funktion|code|text)|ma fonction|mi función)\b/i

const lacksMaterial = (request: string, material: string, code: string, full: ReadText) =>
  !material.trim() &&
  !code &&
  full.words.length <= 40 &&
  (full.raw.match(/\d+/g)?.length ?? 0) < 3 &&
  MISSING.test(request)

const OF_LANGUAGE = new Set(
  'word words phrase phrases say said speak spoken mean means meaning lesson learn learner teacher grammar vocabulary verb translate translation native language in into to auf ins en auf from something wort heißt bilingual both version'.split(
    ' ',
  ),
)

/** "the French word for bread", but not "the French Revolution". */
const speaksOfLanguage = (words: readonly string[]) =>
  words.some(
    (word, index) =>
      languageNamed(word) !== undefined &&
      [-3, -2, -1, 1, 2].some((offset) => OF_LANGUAGE.has(words[index + offset] ?? '')),
  ) ||
  /\b(?:original language|any language|other languages?|bilingual|multilingual|bilingue|bilingüe|zweisprachig\w{0,2}|tweetalig\w?)\b/.test(
    words.join(' '),
  )

/** "Answer in the customer's language" */
export const OWN_LANGUAGE =
  /\b(?:customer|client|guest|user|sender|writer|visitor|reader|patient|their|his|her|same|original)(?:'s|’s|s')? (?:own )?language\b|\bsprache des (?:kunden|gastes|absenders)|\blangue (?:du client|de l'expéditeur)|\bidioma del (?:cliente|remitente)|\blingua del cliente/i

/** "Invitation with lines for name and date. German." */
const languageAtEnd = (request: string) =>
  languageNamed(/[.;!,]\s{1,3}(?:in )?(\p{L}{4,12})[.!]?\s*$/u.exec(request.slice(-40))?.[1]?.toLowerCase() ?? '')

/** "Answer in the customer's language": that of the text given. */
function languageOfCustomer(request: string, material: string): string | undefined {
  if (!OWN_LANGUAGE.test(request)) return undefined
  const language = detectLanguage(wordsOf(material))
  if (language?.isSure) return language.language
  // "Customer (writes in Spanish): …"
  const named = new Set(wordsOf(request).map(languageNamed).filter(Boolean))
  return named.size === 1 ? [...named][0] : undefined
}

const ARTICLES = new Set('het the il lo das la el'.split(' '))
const OF_TEXT = new Set(
  'writes wrote asks asked speaks schreibt schrieb spricht is are was ist sind war written geschrieben est sont écrit está è são'.split(
    ' ',
  ),
)
/** What stands before the name of a language and belongs to it. */
const VARIANTS = new Set(
  'brazilian european american british canadian mexican latin-american swiss austrian flemish belgian simple plain easy formal informal simplified traditional mandarin good proper correct modern colloquial'.split(
    ' ',
  ),
)
const ORDERS = new Set(
  'write make give draft create need produce prepare provide do want send schreib schreibe'.split(' '),
)
const TEXTS = /^(?:message|e-?mail|mail|letter|reply|note|text|sms|out|auto|caption|tweet)$/
const TO_LANGUAGE = new Set('in into to auf ins en al in nach naar till på em para'.split(' '))

/** "in French", "ins Englische", "to Spanish"; with a translation the last language that is named is the target. */
function targetLanguageOf(words: readonly string[], isTranslation: boolean): string | undefined {
  const targets = new Set<string>()
  let hasFrom = false
  words.forEach((word, index) => {
    const language = languageNamed(word)
    if (!language) return
    const before = ARTICLES.has(words[index - 1] ?? '') ? (words[index - 2] ?? '') : (words[index - 1] ?? '')
    if (before === 'from' || before === 'vom' || before === 'aus' || before === 'du' || before === 'del') {
      hasFrom = true
      return
    }
    // "The letter is in English: what do they want?"
    const article = ARTICLES.has(words[index - 1] ?? '') ? 1 : 0
    if (OF_TEXT.has(words[index - 2 - article] ?? '')) {
      hasFrom = true
      return
    }
    const next = words[index + 1] ?? ''
    // "Write the German version of this notice", "a short product note in Brazilian Portuguese"
    const isVersion =
      (/^(?:version|translation)$/.test(next) && words.slice(0, index).some((word) => ORDERS.has(word))) ||
      // "Summarise in one English sentence"
      (/^(?:sentences?|summary|paragraph)$/.test(next) &&
        /^(?:an?|one|two|three|short|single)$/.test(words[index - 1] ?? ''))
    // "Give me a German out-of-office message"
    const isText =
      TEXTS.test(next) && /^an?$/.test(words[index - 1] ?? '') && words.slice(0, index).some((word) => ORDERS.has(word))
    // "in English and French" wants both.
    const other = languageNamed(words[index + 2] ?? '')
    if (other && /^(?:and|und|et|y|e|en)$/.test(next) && TO_LANGUAGE.has(before)) targets.add(other)
    if (isVersion || isText || TO_LANGUAGE.has(VARIANTS.has(before) ? (words[index - 2] ?? '') : ''))
      targets.add(language)
    // "when does it run? german please"
    if (index > 0 && /^(?:please|bitte|pls)$/.test(next) && index + 2 >= words.length) targets.add(language)
    if (TO_LANGUAGE.has(before) && !/^(?:cities|class|history|food|market|customers?|speaking)$/.test(next))
      targets.add(language)
    else if (before === "l'" || /^l'/.test(word) || before === 'lo' || before === 'el') targets.add(language)
  })
  const named = new Set(words.map(languageNamed).filter(Boolean))
  // "into German, Spanish and Italian" wants more than one.
  if (targets.size > 1 || (isTranslation && named.size > 1 && !hasFrom && targets.size < named.size)) return undefined
  const [target] = targets
  return target ?? (isTranslation && !hasFrom ? [...named].at(-1) : undefined)
}
