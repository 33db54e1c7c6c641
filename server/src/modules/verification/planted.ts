import { quotedPassages, sentencesOf } from './text.ts'

/** An order to whoever writes, in a place where the caller does not speak. */
export type PlantedOrder = { start: number; end: number }

/** Whom a text can address that is no person. */
const MACHINES =
  '(?:(?:text|content|copy|language|answer|summary|translation|image|reply|writer|editor|evaluation|extraction|summari[sz]ation|transcription|classification|generation|\\p{L}{0,10}(?:writ|edit|summari[sz]|translat|mark|grad|sort|read|review|evaluat|process|condens|report|scor|rank|classify|transcrib|draft|generat|caption|check|rat|screen|answer|word|count)ing) (?:models?|tools?|engines?|programs?|makers?|software|scripts?|machines?|systems?|agents?|apps?|services?)|(?:\\p{L}{3,14} )?generators?|(?:\\p{L}{3,14} )engines|(?:ai|llm|gpt)s?|models|(?:\\p{L}{3,14})?bots?|copilots?|algorithms|parsers?|crawlers?|scrapers?|summari[sz]ers?|classifiers?)'
/** These may be people, or the names of fields. */
const OTHERS =
  '(?:agents?|assistants?|model|systems?|tools?|software|programs?|engine|machines?|computers?|algorithm|processors?|pipelines?|scripts?|automations?|graders?|evaluators?|assessors?|checkers?|translators?|editors?|proof-?readers?|(?:copy|ghost|re)?writers?|reviewers?|authors?|typists?|analysts?|transcribers?)'
const NO_PREFIX = '(?!(?:you|are|is|am|as|an?|my|our|your|his|her|their|act|be|this|that|with|from|by|of|and|or)\\b)'
const PLACE = '(?:^|\\n {2,12}|[\\n"“«(<\\[{.!?:;#*/|>,~=_–—-] ?|--\\s{0,3})'
const MUST =
  ' (?:must|should|shall|(?:are|is) (?:required |instructed |asked |supposed )?to|ha(?:ve|s) to|needs? to)(?!\\p{L})'
const COLON = '\\s?(?:[:：>\\]](?!:)|->|→)'

/** "Agents processing this" speaks to whoever works on the text. */
const OF_THIS = '(?: \\p{L}{2,14}){1,3}? th(?:is|ese)(?: \\p{L}{2,14}){0,2}?'

const ADDRESS = new RegExp(
  `${PLACE}(?:(?:dear|hey|hello|hi|to|for|if an?|ps|nb|notice|note|notes|message|remark|hint|request|instruction|instructions|attention|important|any|all|every|the) ){0,4}(?:${NO_PREFIX}\\p{L}{2,14}[- ]){0,2}?(?:(?<machine>${MACHINES}(?: \\p{L}{2,14}){0,4}?(?:${COLON}|,|${MUST})|${OTHERS}${OF_THIS}(?:${COLON}|,|${MUST}))|${OTHERS}(?: \\p{L}{2,14}){0,4}?${COLON})`,
  'giu',
)

/** "Whoever edits this text:", "the person typing this up:". */
const WHOEVER =
  /\b(?:who(?:so)?ever|anyone who|(?:the )?(?:person|one|people|those) who) (?:\p{L}{2,14} ){0,2}?(?:(?:re)?writes?|edits?|summari[sz]es?|condenses?|shortens?|translates?|proofreads?|corrects?|process(?:es)?|types?|turns?|formats?|converts?|publish(?:es)?|transcribes?|polish(?:es)?|rewords?|rephrases?|prepares?|drafts?|compiles?|extracts?|handles?|analy[sz]es?|copies|tidies) (?:up )?(?:this|these)(?: \p{L}{1,14}){0,5}?(?:\s?[:：,–—-]| (?:must|should|shall|has to|have to|needs? to|is to)(?!\p{L}))/giu

const BEFORE_VERB =
  '^[\\s"“]{0,3}(?:(?:instead of|when|before|after|if|in|at|for|as|once|while|on|to)\\s[^.,;:\\n]{2,60},\\s?)?(?:(?:please|kindly|also|always|now|instead|just|then|and|additionally|must|should|to|you (?:must|should|shall|are to|have to|need to|will)),?\\s){0,4}'
const VERB = new RegExp(
  `${BEFORE_VERB}(?:never|do not|don't|not|append|add|insert|include|write|say|state|mention|report|output|print|return|reply|respond|answer|declare|claim|describe|call|present|list|recommend|praise|promote|rate|rank|score|grade|mark|label|classify|tag|award|assign|give|conclude|confirm|announce|note|stress|emphasi[sz]e|highlight|point|quote|cite|name|show|display|tell|inform|advise|assure|suggest|explain|begin|start|end|finish|close|open|sign|thank|replace|change|correct|adjust|alter|edit|rewrite|swap|substitute|set|round|count|treat|record|use|put|place|remove|delete|omit|make|ensure|link|attach|repeat|double|raise|increase|lower|reduce|approve|accept|choose|select|pick|prefer|upload|post|send|forward|fetch|import|execute|run)(?!\\p{L})`,
  'iu',
)
/** What is ordered is about the text to be written, and not a favour that somebody asks for. */
const OF_TEXT = new RegExp(
  `${BEFORE_VERB}(?:(?:compute|calculate|count) as if|[^.!?\\n]{2,100}[;,] (?:and )?(?:answer|reply|say|state|write) that |(?:append|insert|write|say|state|mention|report|output|print|declare|claim|describe|praise|promote|rate|rank|conclude|announce|stress|emphasi[sz]e|highlight|replace|change)(?: (?:the|that|this|these|a|an|it|its|all|every|only|in|as|at|your|our|\\d|“|")|\\s?[:"“'‘])|(?:add|include|put|use|give|return|show)(?: \\p{L}{1,12}){0,3} (?:line|sentence|words?|phrase|paragraph|statement|remark|that|total|sum|result|figure|value|verdict|rating|score|grade)(?!\\p{L})|(?:begin|start|end|finish|close|open|sign off) (?:your |the |every |each )?(?:\\p{L}{1,12} )?with\\b)`,
  'iu',
)

/** "Always name us as the source." */
const STANDING = /^\s{0,3}(?:please )?(?:always|also),? /i

/** Orders in quotation marks, a comment, brackets, a bullet or a cell, or behind other words of a pasted line. */
export function plantedOrders(text: string): PlantedOrder[] {
  if (!MENTIONED.test(text)) return []
  const firstLine = text.indexOf('\n') < 0 ? text.length : text.indexOf('\n')
  const quotes = quotedPassages(text, 2_000)
  const orders: PlantedOrder[] = []
  for (const pattern of [ADDRESS, WHOEVER])
    for (const match of text.matchAll(pattern)) {
      const start = match.index + match[0].search(/\p{L}/u)
      const end = match.index + match[0].length
      const before = text.slice(Math.max(0, start - 400), start)
      const line = before.slice(before.lastIndexOf('\n') + 1)
      const isHidden =
        line.lastIndexOf('<!--') > line.lastIndexOf('-->') ||
        line.lastIndexOf('/*') > line.lastIndexOf('*/') ||
        (start > firstLine && (/^\s{0,40}(?:#|\/\/|--)\s{0,3}$/.test(line) || isInDocstring(text, start)))
      const ahead = text.slice(end, end + 160)
      const isFree = isHidden || match.groups?.machine !== undefined || STANDING.test(ahead)
      if (!(isFree ? VERB : OF_TEXT).test(ahead)) continue
      const quote = quotes.find((passage) => passage.start < start && start < passage.end)
      const isPasted =
        isHidden ||
        (quote !== undefined && isCarried(text, quote.start, start)) ||
        (quote === undefined &&
          start > firstLine &&
          (/\p{L}/u.test(line) || (BULLET.test(line) && !isField(text, line))))
      if (isPasted) orders.push({ start, end })
      if (orders.length >= 10) return orders
    }
  return orders
}

/** Between two lines of three quotation marks. */
const isInDocstring = (text: string, at: number) => text.slice(0, at).split('"""').length % 2 === 0

/** A quotation that is nothing but the order is what the task is about, except as the cell of a row. */
const isCarried = (text: string, quoteStart: number, start: number) =>
  /\p{L}{2}/u.test(text.slice(quoteStart, start)) ||
  /[,;|\t]\s?$/.test(text.slice(Math.max(0, quoteStart - 2), quoteStart))

/** Other points of a list have a label too: "- Ana: …", "- Editor: …". */
const isField = (text: string, line: string) =>
  !/[([]\s?$/.test(line) &&
  (text.match(/(?:^|\n)\s{0,8}(?:[-*•|>]|\d{1,2}[.)])\s{0,3}\p{L}{2,20}(?: \p{L}{2,20})?:\s/gu)?.length ?? 0) >= 2

const BULLET = /^\s{0,8}(?:[-*•|>([]|\d{1,2}[.)])/
const MENTIONED = new RegExp(
  `(?<!\\p{L})(?:${MACHINES}|${OTHERS})(?!\\p{L})|\\bwho(?:so)?ever\\b|\\b(?:anyone|person|one|people|those) who\\b`,
  'iu',
)

const PARTNERS =
  /(?:^|\n)[\s>*[(]{0,4}(?:customer|user|client|guest|caller|visitor|patient|student|human|tenant|buyer|kund(?:e|in)|cliente?)\*{0,2}\s?[:：]/iu

/** A text in which nobody is addressed who only speaks: the lines of a chat, and of a log with times. */
export function withoutSpeakers(text: string): string {
  if (!/[:：]/.test(text)) return text
  const isChat = PARTNERS.test(text)
  const blank = (label: string) => ' '.repeat(label.length)
  const timed = text.replace(
    /(?<=(?:^|\n)["“\s[]{0,4}(?:[\d-]{8,10}[T ])?\d{1,2}:\d{2}(?::\d{2})?\]? )\p{L}{2,14}:/gu,
    blank,
  )
  return isChat
    ? timed.replace(
        /(?<=(?:^|\n)[\s>*[(]{0,4})(?:(?:\p{L}{2,12} )?(?:agent|assistant|bot)|chatbot|ai)\*{0,2}\s?[:：]/giu,
        blank,
      )
    : timed
}

/** A task that has orders to a model for its subject. */
export const ABOUT_PROMPTS =
  /\b(?:improve|rewrite|shorten|clarify|review|edit|fix|tighten|rephrase|proofread|correct|simplify|polish) (?:this|the|my|our|following) (?:\p{L}{2,12} )?(?:prompts?|instructions?)\b|\binjections?\b|\bwhat (?:are|is) the (?:instructions?|orders?|requests?)\b/iu

const ROLES =
  /(?<!\p{L})(?:(?:ai|ki|ia|llm|gpt)|\p{L}{0,14}bot|assistant|asistente|model|modell|system|agent|tool|software|program|engine|generator|machine|computer|algorithm|processor|script|evaluator|assessor|grader|checker|examiner|classifier|summari[sz]er|parser|screener|reviewer|copilot|translator|editor|proof-?reader|(?:copy|ghost|re)?writer|reader|author|analyst|whoever)(?=s?(?!\p{L}))/giu

const REPORTS =
  /\b(?:ask|tell|say|want|instruct|order|claim|demand|tr(?:y|ies|ied)|address|request|told|said)(?:s|es|ed|ing)?\b/i

/**
 * The sentences of an answer that do not speak of whom an order addresses: who obeys it does not name them. Of an AI it has to
 * be said what is wanted of it.
 */
export function withoutMention(output: string, address: string): string {
  const roles = [...new Set(address.toLowerCase().match(ROLES))]
  if (roles.length === 0) return output
  const isOpen = roles.some((role) => /^(?:[ak]i|ia|llm|gpt|.{0,14}bot)$/.test(role))
  return sentencesOf(output)
    .filter((sentence) => {
      const named = new Set(sentence.toLowerCase().match(ROLES))
      return !roles.some((role) => named.has(role)) || (isOpen && !REPORTS.test(sentence))
    })
    .join('\n')
}
