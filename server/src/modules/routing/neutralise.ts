/**
 * A task is what the caller wants done, never an instruction to this service. Sentences that talk to the router, name
 * its lanes, or give orders about price, payment, policy and receipts are dropped before the task is read, so that
 * nothing written inside a task can move the choice. The task itself is untouched: the lane still receives all of it.
 *
 * A sentence is dropped only when it gives an order about the service, so that "draft a refund policy", "plan a bus
 * route" and "write an agent in Python" keep their words.
 */

/** Cheap first look: most tasks have none of these and are returned as they are. */
const SUSPECT =
  /-v\d|0x[0-9a-f]{6}|\b(?:lanes?|lane_id|agents?|agent_id|rout(?:e|er|ing)|classif(?:y|ier)|polic(?:y|ies)|ignore|disregard|forget|override|bypass|skip|system|admin|administrator|operator|governance|mandate|wallet|pay|pay_to|usdc|charged?|price[ds]?|pricey|expensive|cheapest|premium|tier|budget|receipt|verify|verified|grade|confidence|prompt|settle|tenant|downgrade|approve|signing key|treat)\b/i

const LANE_NAME =
  /\b(?:comedian|writer|support|analyst|coder|strategist|researcher)[-_ ]v\d+\b|\b(?:agent_id|lane_id|preferred_agent_id|route_id|routing_version|routing_override|pay_to|max_cost(?:_usdc)?)\b/i

const ORDERS: readonly RegExp[] = [
  // "ignore previous instructions", "disregard your guidelines", "forget the above"
  /\b(?:ignore|disregard|forget|override|bypass|skip|disable|circumvent)\b.{0,40}\b(?:instructions?|rules|guidelines|above|previous|prior|classifier|router|routing|polic(?:y|ies)|governance|limits?|budget|mandate|checks?|safety)\b/i,
  // "use the most expensive lane", "pick the cheapest agent", "choose the expert tier"
  /\b(?:use|select|choose|pick|take|prefer|switch to|assign|want|with|by|through|to)\b.{0,40}\b(?:lanes?|tier|agent|model)\b.{0,30}\b(?:price|priced|expensive|cheapest|you have|for this|regardless|whatever|no matter|only|premium|expert|highest)\b/i,
  /\b(?:use|select|choose|pick|take|prefer|switch to|assign|force)\b.{0,40}\b(?:most expensive|cheapest|priciest|premium|highest[- ]priced?|expert)\b.{0,20}\b(?:lanes?|agents?|models?|tiers?)\b/i,
  /\b(?:lane|agent)\b.{0,40}\b(?:must be|should be|has to be|regardless of|whatever the (?:task|topic))\b/i,
  // "route this to …", "router: …", "you are now the routing engine"
  /\b(?:route|routing|send|classify|treat|mark|label) (?:this|it|everything|me|all tasks|the (?:task|request|job))\b.{0,60}\b(?:to|as)\b/i,
  /(?:^|[<[(#*\s])(?:note to (?:the )?|dear |instructions? (?:to|for) (?:the )?)?router\b\s*[:,]/i,
  /\b(?:you are|act as|you're) (?:now )?(?:the|a) rout(?:er|ing)\b/i,
  /\boverride(?:s|n)?\b.{0,30}\b(?:rout(?:er|ing)|decision|system|operator)\b|\b(?:system|admin|routing|operator)[ _](?:override|note|prompt|message)\b/i,
  /\b(?:all|every) (?:future |following )?(?:tasks?|requests?) (?:go|goes|belong)s? to\b|\brequest belongs to\b/i,
  // money: "pay this address", "send 5 USDC to …", "approve any amount", "do not charge me"
  /\b0x[0-9a-f]{8,}/i,
  /\b(?:pay|send|transfer|wire|settle|forward|remit)\b.{0,40}\b(?:usdc|funds|this address|my wallet|wallet|pay_to)\b/i,
  /\bapprove (?:the payment|any amount|all|every|it) ?(?:automatically|without|regardless)?|\b(?:any|no) (?:spending )?limits?\b.{0,30}\bapprove\b/i,
  /\b(?:do not|don't|never) (?:charge|bill|downgrade|verify)\b|\bcharge (?:another|a different|someone)\b/i,
  /\b(?:change|set|make|reduce)\b.{0,20}\b(?:the price|price_usdc|max_cost|cost of this (?:run|task)|fee)\b.{0,30}\b(?:to|zero|free|usdc)\b/i,
  // policy, verdict, receipt, secrets
  /\b(?:skip|ignore|disable|bypass|turn off|switch off)\b.{0,30}\b(?:polic(?:y|ies)|governance|verification|approval|budget|limits?)\b/i,
  /\bpolic(?:y|ies)(?: enforcement| checks?)? (?:is|are) (?:off|disabled|suspended|waived)\b/i,
  /\b(?:mark|record|show|sign)\b.{0,30}\b(?:run|receipt|payment)\b.{0,30}\b(?:as|completed|verified|zero|charged)\b|\breceipt should (?:show|say)\b/i,
  /\b(?:give|grade) (?:it|this|the output) (?:a )?grade\b|\bgrade a\b(?! |$)/i,
  /\b(?:reveal|print|show|leak)\b.{0,30}\b(?:system prompt|signing key|private key|api key)s?\b/i,
  /\bas (?:the|an?) (?:system )?administrator,? i\b/i,
]

/** Where one order may end and the task go on: sentence ends, line breaks and the brackets orders like to hide in. */
const BOUNDARY = /(?<=[.!?;])\s+|\n+|(?=<!--|\[\[|<system)|(?<=-->|\]\]|<\/system>)/

export function neutralise(text: string): string {
  if (!SUSPECT.test(text)) return text
  const kept = text.split(BOUNDARY).filter((piece) => piece && !isOrder(piece))
  // A task that is nothing but orders is read without its lane names: it has no topic to follow.
  return kept.length > 0 ? kept.join('\n') : text.replace(new RegExp(LANE_NAME, 'gi'), ' ')
}

function isOrder(piece: string): boolean {
  if (!SUSPECT.test(piece)) return false
  return LANE_NAME.test(piece) || ORDERS.some((order) => order.test(piece))
}
