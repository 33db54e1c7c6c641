import { spendSteps } from '../../../platform/step-budget.ts'
import type { Brief } from './brief.ts'
import type { Report } from './report.ts'
import { clip, extractContentWords, splitSentences, splitWords, stem } from './text.ts'

const METHOD =
  'Offline support desk: triage by rule and word lists, no language model, no access to accounts or orders.'

const MAX_TICKETS = 30

type Category = {
  name: string
  words: readonly string[]
  steps: readonly string[]
  requestedInfo: string
  commitment: string
}

const CATEGORIES: readonly Category[] = [
  {
    name: 'security',
    words: [
      'hacked',
      'stolen',
      'fraud',
      'fraudulent',
      'unauthorized',
      'unauthorised',
      'breach',
      'phishing',
      'compromised',
      'scam',
      'suspicious',
    ],
    steps: [
      'Freeze the account and end its sessions before anything else.',
      'Check recent logins and payments; keep the evidence.',
      'Hand to the security team with the times noted.',
    ],
    requestedInfo: 'when you first noticed it and what you saw',
    commitment: 'We are securing the account first and will tell you what we find.',
  },
  {
    name: 'refund',
    words: ['refund', 'refunded', 'return', 'returned', 'chargeback', 'reimburse', 'reimbursement', 'moneyback'],
    steps: [
      'Check the order against the refund window.',
      'If it qualifies, start the refund and note the reference.',
      'If it does not, offer credit or replacement and say why.',
    ],
    requestedInfo: 'the order number and the date of purchase',
    commitment: 'Once we have those we will tell you whether a refund applies and when it would arrive.',
  },
  {
    name: 'billing',
    words: [
      'charged',
      'charge',
      'invoice',
      'billing',
      'billed',
      'payment',
      'card',
      'subscription',
      'twice',
      'overcharged',
      'price',
      'fee',
      'renewal',
      'renewed',
    ],
    steps: [
      'Compare the charge with the plan and the invoice.',
      'Look for a duplicate or a failed retry.',
      'Correct the invoice or explain the line item.',
    ],
    requestedInfo: 'the invoice number or the last four digits and date of the charge',
    commitment: 'We will check the charge line by line and correct it if it is ours.',
  },
  {
    name: 'damaged goods',
    words: [
      'torn',
      'ripped',
      'scratched',
      'cracked',
      'dented',
      'damaged',
      'stained',
      'chipped',
      'shattered',
      'leaking',
    ],
    steps: [
      'Ask for a photo before anything is sent back.',
      'Offer replacement, repair or refund; let the customer choose.',
      'Book the return at our cost and note the carrier for the claim.',
    ],
    requestedInfo: 'the order number and a photo of the damage',
    commitment: 'Once we have those you choose between a replacement, a repair and a refund, as our terms allow.',
  },
  {
    name: 'delivery',
    words: [
      'delivery',
      'delivered',
      'shipping',
      'shipped',
      'package',
      'parcel',
      'order',
      'arrived',
      'arrive',
      'tracking',
      'courier',
      'late',
      'missing',
      'lost',
    ],
    steps: [
      'Look up the tracking number and the last scan.',
      'Open a trace with the carrier if the last scan is over two days old.',
      'Offer reshipment or refund if the trace fails.',
    ],
    requestedInfo: 'the order or tracking number and the delivery address on file',
    commitment: 'We will trace the parcel and come back with its position.',
  },
  {
    name: 'access',
    words: [
      'login',
      'log',
      'password',
      'locked',
      'account',
      'reset',
      'signin',
      'sign',
      'verification',
      '2fa',
      'code',
      'username',
      'access',
    ],
    steps: [
      'Confirm the address on file without revealing it.',
      'Send a fresh reset link; check that mail is not suppressed.',
      'If two-factor is lost, start the recovery path.',
    ],
    requestedInfo: 'the e-mail address on the account and the message you see',
    commitment: 'We will send a fresh link and stay with you until you are in.',
  },
  {
    name: 'fault',
    words: [
      'broken',
      'error',
      'crash',
      'crashes',
      'crashing',
      'bug',
      'fails',
      'failed',
      'freezes',
      'slow',
      'down',
      'outage',
      'working',
      'stopped',
      'blank',
      'stuck',
      'typo',
      'deleted',
      'disappeared',
      'wiped',
      'update',
      'defective',
    ],
    steps: [
      'Reproduce with the same version and device.',
      'Check the status page and recent releases.',
      'Offer the workaround, then file the defect with the steps.',
    ],
    requestedInfo: 'the version, the device and the exact error text',
    commitment: 'We will try to reproduce it and give you a workaround or a fix date.',
  },
  {
    name: 'cancellation',
    words: [
      'cancel',
      'cancelled',
      'cancellation',
      'close',
      'unsubscribe',
      'leave',
      'leaving',
      'downgrade',
      'terminate',
    ],
    steps: [
      'Confirm what is to be cancelled and from when.',
      'Say what is lost and what stays.',
      'Cancel, confirm in writing, ask for the reason once.',
    ],
    requestedInfo: 'which subscription to cancel and from which date',
    commitment: 'We will confirm the cancellation in writing.',
  },
  {
    name: 'how-to',
    words: [
      'how',
      'where',
      'setup',
      'install',
      'configure',
      'export',
      'change',
      'settings',
      'guide',
      'tutorial',
      'use',
    ],
    steps: [
      'Give the shortest path, one step a line.',
      'Link the article that has pictures.',
      'Ask whether it worked.',
    ],
    requestedInfo: 'which plan and device you use',
    commitment: 'We will send the exact steps for your version.',
  },
]

/** For a message that matches no category. */
const GENERAL: Category = {
  name: 'general',
  words: [],
  steps: ['Read it in full: no rule here names its kind.', 'Answer it, or tell the customer who will and by when.'],
  requestedInfo: 'what you would like us to do',
  commitment: 'We will answer, or tell you who will and by when.',
}

const NEGATIVE = new Set(
  'angry annoyed awful bad broken complaint damaged defective disappointed disappointing disgusting fail failed failing frustrated frustrating furious hate horrible incompetent late lied lost missing mistake never outrageous pathetic poor problem ridiculous rude scam slow stuck terrible unacceptable unhappy unhelpful upset useless waiting waste worst wrong'.split(
    ' ',
  ),
)
const POSITIVE = new Set(
  'amazing appreciate awesome excellent fantastic glad good great happy helpful kind love loved nice patient perfect pleased quick thank thanks wonderful'.split(
    ' ',
  ),
)
const NEGATIONS = new Set([
  'not',
  'no',
  "isn't",
  "wasn't",
  "don't",
  "doesn't",
  "didn't",
  "can't",
  "won't",
  'hardly',
  'never',
])

type Ticket = {
  text: string
  category: Category
  otherCategories: readonly Category[]
  matchedWords: readonly string[]
  sentiment: Sentiment
  flags: readonly string[]
  priority: Priority
}

/** Triages and answers one message, or orders several by priority. */
export function triageSupport(brief: Brief): Report {
  const tickets = splitTickets(brief)
  if (tickets.length > 1) return reportQueue(tickets.map(triage))
  const { policy, message } = splitPolicy(brief)
  const ticket = triage(message)
  return reportTicket(ticket, choosePolicySentences(policy, message))
}

const POLICY_LABEL =
  /(?:^|\n|[.!?] )[ \t]{0,8}(?:(?:our|the|company|store|shop|refund|return|returns|shipping|warranty|cancellation|privacy|support) ){0,3}(?:policy|policies|terms|rules|guidelines|faq|knowledge base|handbook)(?: (?:is|says|states|text|excerpt))?[ \t]{0,2}[:=][ \t]{0,8}/i
const MESSAGE_LABEL =
  /(?:^|\n|[.!?] )[ \t]{0,8}(?:the )?(?:customer(?:'s|’s)?(?: (?:message|says|writes|wrote|asks|question|e-?mail))?|message|ticket|question|complaint|request|e-?mail|client|user)(?: (?:says|writes|wrote|asks))?[ \t]{0,2}[:=][ \t]{0,8}/i

/** The text of a policy that the task gives, and the rest, which is the customer's. */
function splitPolicy(brief: Brief): { policy: string; message: string } {
  const text = brief.task
  const whole = brief.material || brief.task
  const label = POLICY_LABEL.exec(text)
  if (!label) return { policy: '', message: whole }
  const start = label.index + label[0].length
  const rest = text.slice(start)
  const next = MESSAGE_LABEL.exec(rest)
  const blank = rest.search(/\n[ \t]{0,8}\n/)
  const end = next ? next.index + 1 : blank > 0 ? blank : rest.length
  const policy = rest.slice(0, end).trim()
  const before = text.slice(0, label.index + 1)
  const ownMessage = MESSAGE_LABEL.exec(before)
  const after = next ? rest.slice(next.index + next[0].length) : rest.slice(end)
  const message =
    after.trim() || (ownMessage ? before.slice(ownMessage.index + ownMessage[0].length).trim() : before.trim())
  return { policy, message: message || whole }
}

const MAX_POLICY_SENTENCES = 3

/** The sentences of the policy that have most to do with the message, in their order; the first when none has. */
function choosePolicySentences(policy: string, message: string): string[] {
  const sentences = splitSentences(policy, 60)
  const words = new Set(extractContentWords(message).map(stem))
  const scored = sentences.map(({ text, index }) => ({
    text,
    index,
    score: new Set(
      extractContentWords(text)
        .map(stem)
        .filter((word) => words.has(word)),
    ).size,
  }))
  const fitting = scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || a.index - b.index)
  const chosen = fitting.length > 0 ? fitting.slice(0, MAX_POLICY_SENTENCES) : scored.slice(0, 1)
  return chosen.sort((a, b) => a.index - b.index).map(({ text }) => clip(text, 400))
}

/** Messages listed one per line, when the request mentions several. */
function splitTickets(brief: Brief): string[] {
  const request = brief.material ? brief.instruction : brief.task
  if (!/\b(?:tickets|messages|requests|complaints|emails|e-mails|cases|reviews|enquiries|inquiries)\b/i.test(request))
    return []
  return (brief.material || brief.task)
    .split('\n')
    .flatMap(
      (line) => /^\s*(?:[-*•]|#?\d{1,2}[.):]|[A-H][.)]|ticket \d{1,3}:)\s+(.{3,})/i.exec(line)?.[1]?.trim() ?? [],
    )
    .slice(0, MAX_TICKETS)
}

function triage(text: string): Ticket {
  const words = splitWords(text.replace(/\b(?:my )?money back\b|\bpay me back\b/gi, 'refund'))
  const ranked = CATEGORIES.map((category) => ({
    category,
    hits: words.filter((word) => category.words.includes(word)),
  }))
    .filter((entry) => entry.hits.length > 0)
    .sort((a, b) => b.hits.length - a.hits.length)
  const category = ranked[0]?.category ?? GENERAL
  spendSteps(text.length + words.length * CATEGORIES.length)
  const flags = detectFlags(text)
  const sentiment = detectSentiment(words, text, flags)
  return {
    text,
    category,
    otherCategories: ranked.slice(1, 3).map((entry) => entry.category),
    matchedWords: [...new Set(ranked[0]?.hits ?? [])].slice(0, 6),
    sentiment,
    flags,
    priority: assignPriority(category, sentiment, flags),
  }
}

function reportQueue(tickets: readonly Ticket[]): Report {
  const orderedTickets = tickets
    .map((ticket, i) => ({ ...ticket, number: i + 1 }))
    .sort((a, b) => (a.priority.level < b.priority.level ? -1 : a.priority.level > b.priority.level ? 1 : 0))
  const first = orderedTickets[0]!
  return {
    lane: 'support',
    title: `Queue of ${tickets.length} tickets, first: number ${first.number}`,
    summary: `Take number ${first.number} first (${first.priority.level}, ${first.category.name}): ${first.priority.reason}`,
    sections: [
      {
        heading: 'In the order to take them',
        table: {
          columns: ['ticket', 'priority', 'category', 'sentiment', 'why', 'message'],
          rows: orderedTickets.map(({ number, priority, category, sentiment, text }) => [
            String(number),
            priority.level,
            category.name,
            sentiment.name,
            priority.reason,
            clip(text, 100),
          ]),
        },
      },
      {
        heading: 'First step for each',
        lines: orderedTickets.map(({ number, category, flags }) => {
          const escalate = flags.length > 0 ? ` Escalate: ${flags.join(', ')}.` : ''
          return `Ticket ${number}: ${category.steps[0]!}${escalate}`
        }),
      },
    ],
    method: METHOD,
  }
}

/** Category, priority, sentiment, extracted facts, a reply to send and the steps for the agent. */
function reportTicket(
  { text, category, otherCategories, matchedWords, sentiment, flags, priority }: Ticket,
  policy: readonly string[],
): Report {
  const facts = extractFacts(text)
  return {
    lane: 'support',
    title: `Ticket: ${category.name}, ${priority.level}`,
    summary: `${indefiniteArticle(sentiment.name)} ${sentiment.name} customer with ${indefiniteArticle(category.name).toLowerCase()} ${category.name} matter, priority ${priority.level}: ${priority.reason}`,
    sections: [
      {
        heading: 'Triage',
        table: {
          columns: ['field', 'value'],
          rows: [
            ['category', category.name],
            ['also touches', otherCategories.map(({ name }) => name).join(', ') || 'nothing else'],
            ['matched words', matchedWords.join(', ') || 'none'],
            ['priority', `${priority.level} (${priority.reason})`],
            ['sentiment', `${sentiment.name} (${sentiment.negative} negative, ${sentiment.positive} positive words)`],
            ['flags', flags.join(', ') || 'none'],
          ],
        },
      },
      {
        heading: 'Facts in the message',
        lines: facts.length > 0 ? facts : ['No order number, amount, date or address was given.'],
      },
      { heading: 'Reply to send', prose: writeReply(category, sentiment, facts, text, policy) },
      {
        heading: 'Policy, as given',
        lines: policy.map((sentence) => `“${sentence}”`),
      },
      {
        heading: 'Steps for the agent',
        lines: [...category.steps, ...(flags.length > 0 ? [`Escalate: ${flags.join(', ')}.`] : [])],
      },
    ],
    method: METHOD,
  }
}

const indefiniteArticle = (word: string) => (/^[aeiou]/.test(word) ? 'An' : 'A')

type Sentiment = { name: 'upset' | 'unhappy' | 'neutral' | 'friendly'; negative: number; positive: number }

/** A sentiment word within two words after a negation counts for the opposite side. */
function detectSentiment(words: readonly string[], text: string, flags: readonly string[]): Sentiment {
  let negative = 0
  let positive = 0
  words.forEach((word, i) => {
    const negated = NEGATIONS.has(words[i - 1] ?? '') || NEGATIONS.has(words[i - 2] ?? '')
    if (NEGATIVE.has(word)) negated && word !== 'never' ? positive++ : negative++
    else if (POSITIVE.has(word)) negated ? negative++ : positive++
  })
  const isShouting = (text.match(/\b[A-Z]{4,}\b/g)?.length ?? 0) >= 2 || (text.match(/!/g)?.length ?? 0) >= 3
  // A threat of legal action or a chargeback counts as negative, however calm the words.
  const hasThreat = flags.includes('legal threat') || flags.includes('chargeback risk')
  const balance = negative + (isShouting ? 2 : 0) + (hasThreat ? 2 : 0) - positive
  return {
    name: balance >= 4 ? 'upset' : balance >= 1 ? 'unhappy' : balance <= -1 ? 'friendly' : 'neutral',
    negative,
    positive,
  }
}

function detectFlags(text: string): string[] {
  const flagPatterns: [string, RegExp][] = [
    ['legal threat', /\b(?:lawyer|attorney|sue|legal action|court|ombudsman|trading standards)\b/i],
    ['chargeback risk', /\b(?:chargeback|dispute (?:the|this) (?:charge|payment)|my bank)\b/i],
    ['public complaint', /\b(?:review|twitter|trustpilot|facebook|reddit|news|social media)\b/i],
    ['leaving', /\b(?:cancel|switch(?:ing)? to|competitor|leaving|close my account)\b/i],
    ['safety', /\b(?:fire|smoke|burn(?:t|ed)?|injur\w{1,6}|hospital|unsafe|shock)\b/i],
    [
      'outage',
      /\b(?:down|outage|offline|unavailable|unreachable)\b.{0,40}\b(?:all|everyone|everybody|every|entire|whole|users|customers|production)\b|\b(?:nobody|no one|none of (?:us|our \w{3,12})) can\b/i,
    ],
    [
      'data loss',
      /\b(?:deleted|lost|wiped|erased|gone)\b.{0,30}\b(?:photos|data|files|account|work|documents|history|contacts)\b/i,
    ],
    [
      'deadline',
      /\b(?:urgent(?:ly)?|asap|right away|immediately)\b|\b(?:by|for|before|until) (?:today|tonight|tomorrow|the weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b/i,
    ],
    ['personal data', /\b(?:gdpr|ccpa|privacy|personal data|delete my data)\b/i],
    [
      'repeat contact',
      /\b(?:again|second time|third time|still no|weeks ago|no one (?:answers|replied)|nobody (?:answers|replied))\b/i,
    ],
  ]
  return flagPatterns.filter(([, pattern]) => pattern.test(text)).map(([name]) => name)
}

type Priority = { level: 'P1' | 'P2' | 'P3' | 'P4'; reason: string }

function assignPriority(category: Category, sentiment: Sentiment, flags: readonly string[]): Priority {
  if (flags.includes('safety')) return { level: 'P1', reason: 'somebody may be harmed.' }
  if (flags.includes('outage')) return { level: 'P1', reason: 'it stops more than one customer.' }
  if (category.name === 'security') return { level: 'P1', reason: 'the account may be in other hands.' }
  if (flags.includes('legal threat') || flags.includes('chargeback risk'))
    return { level: 'P2', reason: `${flags.join(' and ')}.` }
  if (sentiment.name === 'upset' || flags.includes('repeat contact'))
    return { level: 'P2', reason: 'the customer is losing patience.' }
  if (flags.includes('data loss')) return { level: 'P2', reason: 'something of the customer’s may be lost.' }
  if (flags.includes('deadline')) return { level: 'P2', reason: 'the customer named a deadline.' }
  if (category.name === 'how-to' && sentiment.name !== 'unhappy')
    return { level: 'P4', reason: 'a question, nothing is broken.' }
  return { level: 'P3', reason: 'an ordinary case, answer the same day.' }
}

function extractFacts(text: string): string[] {
  const factPatterns: [string, RegExp][] = [
    [
      'Reference',
      /\b(?:order|ticket|invoice|case|booking|ref(?:erence)?|tracking)\s?(?:number|no\.?|id)?\s?[:#]?\s?#?([A-Z0-9-]{0,20}\d[A-Z0-9-]{0,20})/gi,
    ],
    [
      'Amount',
      /([$€£]\s?\d[\d,]{0,12}(?:\.\d{1,2})?|\b\d[\d,]{0,12}(?:\.\d{1,2})?\s?(?:USD|EUR|GBP|USDC|dollars|euros|pounds)\b)/gi,
    ],
    [
      'Date',
      /\b(\d{4}-\d{2}-\d{2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|(?:january|february|march|april|may|june|july|august|september|october|november|december) \d{1,2}|yesterday|last (?:week|month|monday|tuesday|wednesday|thursday|friday))\b/gi,
    ],
    ['E-mail', /\b([\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4})\b/g],
    ['Error', /\b((?:error|code)\s?[:#]?\s?[A-Z]{0,6}[-_]?\d{2,6})\b/gi],
  ]
  return factPatterns.flatMap(([name, pattern]) => {
    const matches = [...text.matchAll(pattern)].map((match) => match[1]!.trim())
    return matches.length > 0 ? [`${name}: ${[...new Set(matches)].slice(0, 4).join(', ')}`] : []
  })
}

function writeReply(
  category: Category,
  sentiment: Sentiment,
  facts: readonly string[],
  text: string,
  policy: readonly string[],
): string {
  const openings: Record<Sentiment['name'], string> = {
    upset: 'I am sorry. You should not have had to write this, and I will see it through myself.',
    unhappy: 'I am sorry about the trouble, and thank you for telling us plainly.',
    neutral: 'Thank you for getting in touch.',
    friendly: 'Thank you for the kind words, and for getting in touch.',
  }
  const firstSentence = splitSentences(text)[0]?.text.replace(/^["“]|["”]$/g, '')
  const factsLine =
    facts.length > 0
      ? `I have noted from your message: ${facts.join('; ')}.`
      : `To start, please send me ${category.requestedInfo}.`
  return [
    'Hello,',
    openings[sentiment.name],
    firstSentence ? `As I understand it: “${clip(firstSentence, 200)}”` : '',
    policy.length > 0 ? `Our policy says: ${policy.map((sentence) => `“${sentence}”`).join(' ')}` : '',
    // What the policy says binds; a standing promise beside it could contradict it.
    policy.length > 0 ? factsLine : `${factsLine} ${category.commitment}`,
    'You can answer this message directly; it reaches me.',
    'Kind regards,\nCustomer Support',
  ]
    .filter(Boolean)
    .join('\n\n')
}
