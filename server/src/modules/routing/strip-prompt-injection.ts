/**
 * A task is work for a lane, never an instruction to this service. Text that addresses the router, names its lanes, or
 * gives instructions about price, payment, policy and receipts is removed before the router reads the task, so that
 * nothing written inside a task can change the choice. The lane still receives the whole task.
 *
 * Only instructions are removed, from their start to the end of their sentence, so that "draft a refund policy", "plan a
 * bus route" and "write an agent in Python" keep their words, and so does a task with an instruction appended to it.
 */
export function stripPromptInjection(text: string): string {
  if (!SUSPECT.test(text)) return text
  const sentences = text.split(SENTENCE_END)
  const strippedSentences = sentences.map(stripInstruction)
  if (strippedSentences.every((sentence, i) => sentence === sentences[i])) return text
  const stripped = strippedSentences.join('').trim().replace(POSTSCRIPT, '')
  if (stripped) return stripped
  // The whole text was one instruction: what follows the last service name may still be the task.
  const names = [...text.matchAll(new RegExp(SERVICE_NAME, 'gi'))]
  const lastName = names.at(-1)
  return lastName ? stripPromptInjection(text.slice(lastName.index + lastName[0].length).trim()) : ''
}

/** A cheap pre-check: most tasks match none of these and are returned unchanged. */
const SUSPECT =
  /-v\d|0x[0-9a-f]{6}|\b(?:lanes?|lane_id|agents?|agent_id|rout(?:e|er|ing)|classif(?:y|ier)|polic(?:y|ies)|ignore|disregard|forget|override|bypass|skip|admin|administrator|governance|mandate|wallet|pay_to|usdc|expensive|cheapest|priced?|tier|receipt|verify|grade|system prompt|tenant|downgrade|approve|treat|max_cost|charged?|mark|reveal|pricing|checks|system message|admin mode|pay this|refund everything|refund the whole|unlimited|receipt|i am the)\b|\[system\]|\boverride:|\blane=|=expert/i

const SENTENCE_END = /(?<=[.!?]|[.!?]\)|-->|\]\]|<\/system>|\}|end system prompt)(?=\s)|(?<=\n)/i

/** Names that only this service uses: a sentence with one of them is about the service. */
const SERVICE_NAME =
  /\b(?:comedian|writer|support|analyst|coder|strategist|researcher)[-_ ]v\d+\b|\b(?:agent_id|lane_id|preferred_agent_id|route_id|routing_version|routing_override|pay_to|max_cost(?:_usdc)?|price_usdc)\b|\b0x[0-9a-f]{8,}/i

/** Words that may start an instruction with such a name; the nearest one before the name counts. */
const INSTRUCTION_START =
  /\b(?:use|using|select|choose|pick|prefer|route|send|assign|forward|output|treat|classify|label|mark|set|force|switch|change|pay|transfer|wire|settle|you are|you're|you must|the (?:correct |right |proper |only )?lane|lane|agent|from now on|all (?:tasks|requests)|this (?:task|request|job) (?:is|belongs)|operator|router|route)\b/gi

const RANK = '(?:most expensive|cheapest|priciest|costliest|premium|expert|highest[- ]priced?|dearest)'
const CHOOSE = '(?:use|select|choose|pick|take|prefer|switch to|assign|force|want)'
const LANE_WORD =
  '(?:comedian|comedy|writer|writing|support|analyst|analysis|coder|coding|strategist|strategy|researcher|research)'
const DROP = '(?:ignore|disregard|forget|override|bypass|skip|disable|circumvent|turn off|switch off)'

const INSTRUCTION_PATTERNS: readonly RegExp[] = [
  new RegExp(
    `\\b${DROP}\\b.{0,30}\\b(?:instructions?|(?:your|the|all|these|any) (?:rules|guidelines)|the above|everything above|previous|classifier|router|routing|governance|mandate|safety)\\b`,
    'i',
  ),
  new RegExp(
    `\\b${DROP}\\b.{0,20}\\b(?:polic(?:y|ies)(?: checks?| enforcement)?|verification|approvals?|budget(?: limits?| checks?)?|spending limits?)\\b`,
    'i',
  ),
  new RegExp(`\\b${CHOOSE}\\b.{0,30}\\b${RANK}\\b.{0,12}\\b(?:lanes?|agents?|models?)\\b`, 'i'),
  new RegExp(
    `\\b${CHOOSE}\\b.{0,30}\\b(?:lane|agent|model)\\b.{0,30}\\b(?:price|priced|expensive|cheapest|you have|regardless|whatever|no matter)\\b`,
    'i',
  ),
  new RegExp(
    `\\b${CHOOSE}\\b.{0,20}\\b(?:premium|expert|highest|most expensive) tier\\b.{0,12}\\b(?:for this|agent|lane|please|only)\\b`,
    'i',
  ),
  new RegExp(
    `\\b(?:${CHOOSE}|give|pass|hand|leave|send|route|forward|escalate|delegate)(?: \\w+){0,3} (?:the|your) ${LANE_WORD} (?:lane|agent|tier)\\b`,
    'i',
  ),
  /\b(?:handled|done|answered|processed|executed) by (?:your|the) (?:\w+ ){0,5}(?:agent|lane)\b/i,
  /\b(?:ignore|forget|disregard) (?:your|the|any|all) (?:pricing|prices?|fees?|topic|policies|policy)\b/i,
  /\b(?:do not|don't|never) (?:apply|enforce|check|use) (?:any|the|your) (?:\w+ )?polic(?:y|ies)\b/i,
  /\b(?:disable|turn off|switch off|suspend)(?: all)?(?: the| your)? checks\b|\b(?:budget |policy )?checks are (?:off|suspended|disabled)\b/i,
  /\bthe (?:user|caller|customer|tenant) has (?:an )?unlimited\b/i,
  /\bi am the (?:developer|owner|operator|admin|administrator|creator) of this (?:service|system|platform|api)\b/i,
  /\bif you are (?:an? )?(?:ai )?(?:router|routing\w*|classifier)\b/i,
  /\b(?:lane|agent|tier|priority|category)=\w+/i,
  /\bmake sure the receipt\b|\brefund (?:everything|the whole payment) to\b/i,
  /\[system\]|\badmin mode\b|\bsystem message\s?:|\boverride\s?:/i,
  /\bassign (?:this|it|the) (?:job|task|request)\b/i,
  /\bthe (?:correct |right |proper )?lane\b.{0,40}\b(?:is|must|should|has to|for this)\b/i,
  /\b(?:route|send|classify|treat|mark|label|forward|hand) (?:this|it|everything|all tasks|the (?:task|request|job))\b.{0,60}\b(?:to the \w+ (?:lane|agent)|as an? \w+ (?:task|job|lane)|lane|agent)\b/i,
  /\b(?:note|message|instructions?|memo) (?:to|for) (?:the )?(?:router|routing engine|classifier)\b|\b(?:dear )?router\s?[:,]|<system>|\[\[route/i,
  /\b(?:you are|you're|act as) (?:now )?(?:the|a) rout(?:er|ing)\b/i,
  /\b(?:system|routing|router|admin|operator)[ _](?:override|note)\b|\b(?:begin|end) system prompt\b/i,
  /\bas (?:the|an?) (?:system )?(?:administrator|admin|operator),? i\b/i,
  /\b(?:pay|send money to|settle to) (?:this|the following|my) (?:address|wallet)\b/i,
  /(?:^|[,;:.]|\b(?:and|then|also|please|must|now))\s*(?:pay|send|transfer|wire|remit)\b.{0,30}\b(?:usdc|the funds|the money to|my wallet)\b/i,
  /\bapprove (?:the payment|any amount|every payment|all payments)\b|\bmy mandate has no\b/i,
  /\b(?:do not|don't|never) (?:charge me for this (?:run|task|request)|downgrade|verify the output)\b|\bcharge (?:another|a different) tenant\b/i,
  /\b(?:change|set|make|reduce) the (?:price|cost|fee) (?:of|for) this (?:run|task|request)\b/i,
  /\bpolicy (?:enforcement|checks?) (?:is|are) (?:off|disabled|suspended|waived)\b/i,
  /\b(?:mark|record) (?:this run|the run|the receipt|the payment)\b|\bthe receipt should (?:show|say)\b/i,
  /\b(?:reveal|print|show|leak) (?:me )?(?:your|the) (?:system prompt|signing keys?|private keys?)\b/i,
]

/** All patterns in one, to find the earliest instruction in one pass: thirty passes per sentence would cost more than routing itself. */
const ANY_INSTRUCTION = new RegExp(INSTRUCTION_PATTERNS.map((pattern) => pattern.source).join('|'), 'i')

/** Words that only introduce an instruction and are removed with it, and the signs that may stand around them. */
const LEAD_IN_WORDS =
  /(?:\b(?:please|also|and|then|now|but|so|important|attention|note|begin|from now on|the operator says|use|you must|just|this (?:must|has to|should) be|whatever (?:happens|this is(?: about)?|it is(?: about)?)|p\.? ?s\.?)\b|\b(?:system|admin|router|operator)\b(?: (?:override|note|prompt|message|says))?|\bas (?:the|an?) (?:system )?(?:administrator|admin|operator),? ?i?(?: hereby)?(?: authori[sz]e you to)?)$/i
const SIGNS_AFTER_WORDS = new Set(',:;!')
const SIGNS = new Set('([{<"\'#*!-')

/** What remains of a postscript whose instruction was removed. */
const POSTSCRIPT = /(?:^|\s)p\. ?s\.:?$/i
const LEAD_IN_REACH = 90
const LANE_REACH = 50
const FIELD_REACH = 14

function stripInstruction(sentence: string): string {
  if (!SUSPECT.test(sentence)) return sentence
  const start = Math.min(findServiceInstruction(sentence), findStart(ANY_INSTRUCTION, sentence))
  if (start === Number.POSITIVE_INFINITY) return sentence
  const from = Math.max(0, start - LEAD_IN_REACH)
  return sentence.slice(0, from) + removeLeadIn(sentence.slice(from, start))
}

/** Takes words and signs from the end, one after the other: a pattern that repeats both would try every way to split them. */
function removeLeadIn(text: string): string {
  let end = text.length
  for (;;) {
    const wordsEnd = trimEnd(text, end, SIGNS_AFTER_WORDS)
    const words = LEAD_IN_WORDS.exec(text.slice(0, wordsEnd))
    const next = words ? words.index : trimEnd(text, end, SIGNS)
    if (next === end) return text.slice(0, end)
    end = next
  }
}

/** Where a text ends without these signs and the white space at its end. */
function trimEnd(text: string, from: number, signs: ReadonlySet<string>): number {
  let end = from
  while (end > 0 && (signs.has(text[end - 1]!) || text[end - 1]!.trim() === '')) end--
  return end
}

/** An instruction about a field starts right before it ("set agent_id"); one about a lane or an address may start earlier. */
function findServiceInstruction(sentence: string): number {
  const match = SERVICE_NAME.exec(sentence)
  if (!match) return Number.POSITIVE_INFINITY
  const reach = /_/.test(match[0]) ? FIELD_REACH : LANE_REACH
  const from = Math.max(0, match.index - reach)
  const starts = [...sentence.slice(from, match.index).matchAll(INSTRUCTION_START)]
  return starts.length > 0 ? from + starts.at(-1)!.index : match.index
}

function findStart(pattern: RegExp, text: string): number {
  const index = text.search(pattern)
  return index < 0 ? Number.POSITIVE_INFINITY : index
}
