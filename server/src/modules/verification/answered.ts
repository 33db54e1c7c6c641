import { answerFeatures } from './answer-features.ts'
import { canDecline, scoreDeclining } from './answer-model.ts'
import { findFiller } from './filler.ts'
import { combine, doubt, type Finding, failed, passed } from './finding.ts'
import { numberOfWord } from './numbers.ts'
import { findPlaceholders } from './placeholders.ts'
import type { ReadTask } from './task.ts'
import { plainText, quotedPassages, type ReadText, sentencesOf, splitFences, wordsOf } from './text.ts'

/** Is there an answer at all? A refusal, a question back, an echo of the task and an unfilled template are none. */
export const checkAnswered = (task: ReadTask, output: ReadText): Finding =>
  combine([
    findRefusal(task, output),
    findQuestionBack(task, output),
    findEcho(task, output),
    findPlaceholders(task, output),
    findFiller(task, output),
    findAnnouncement(task, output),
    findOffer(task, output),
    findPromise(task, output),
    findPlanToAnswer(task, output),
    findMissingFigure(task, output),
    findShortTranslation(task, output),
    findTalkOfTranslation(task, output),
  ])

const EDITS =
  /\b(?:rewrite|rephrase|plain (?:english|language|words)|reword|shorten|concise|correct|proof-?read|polite\w{0,2}|passive|formal\w{0,2}|simplif\w{1,3}|paraphrase|repeat|echo|umformulier\w{1,3}|höflich\w{0,3}|reformul\w{1,3}|poli\w{0,3}|reescrib\w{1,3}|riscriv\w{1,3}|herschrijf|netter|beleefd\w{0,3}|vriendelijker|freundlicher|formeller|plus courtois\w?|más (?:amable|formal)|più gentile)\b|丁寧|言い換え|書き直|直して|改写|润色/i
const DECLINED =
  /\b(?:not|can't|cannot|unable|never|won't|sorry|unfortunately|nicht|kein\w{0,2}|leider|pas|désolée?|no puedo|non posso)\b/i
/** "Policy: never give out …", "we don't give medical advice" */
const FORBIDS =
  /\b(?:do not|don['’]t|never|must not) (?:reveal|disclose|tell|share|give out|promise|quote)\b|\b(?:policy|rules?|guidelines?|richtlinie|règle|política|regel)\b[^\n]{0,120}\b(?:never|not|no|don['’]?t|cannot|can['’]t|only|kein\w{0,2}|nicht|nie|pas|jamais|nunca)\b/i
/** A message may promise for later, ask for something or send elsewhere when its task says so. */
const PROMISES =
  /\b(?:auto-?reply|out[- ]of[- ]office|away|absen\w{2,3}|(?:get|come|be) back|will (?:answer|reply|call|send|follow|write|check)|later|postpon\w{1,4}|delay\w{0,3}|ask (?:for|her|him|them)|needs?|missing|abwesen\w{2,5}|später|nachreichen|bitte um)\b/i
/** Short forms that have few words of the task. */
const OPEN_FORM =
  /\b(?:quote|motto|titles?|slogans?|taglines?|headlines?|line|one-?liner|spruch|motto|eslogan|lema|stor(?:y|ies)|poems?|haikus?|captions?|puns?|names?|lyrics|verse)\b/i
/** The score of the model over which a text counts as a refusal. */
const DECLINES = 1.3
/** What rewords a text, is short on purpose or is sent to somebody may decline something by order. */
const DECLINES_IN_FORM = 1.9
const DECLINES_IN_LETTER = 2.5
/** A question back is one where the model holds it for a refusal rather than not. */
const LEANS_TO_DECLINING = 0.5
const HEAD = 700
const SHORT = 650

const YES_OR_NO = /^(?:yes|no|yep|correct|right|ja|nein|oui|non|sí|sì|sim|não)\b[,.!:;]/i

/** "I'd love to help, but …" */
const WOULD_HELP_BUT =
  /(?:^|[.!?] )i(?:'d| would) (?:love|like|be (?:happy|glad|delighted)) to (?:help|assist|oblige|do (?:that|this|so))(?: you| with (?:this|that|it))?,? but\b/i

/** "Our information doesn't say …", and then what it does say. */
const ABSENT =
  /\b(?:information|faq|sheet|notes?|text|data|list|page|menu|policy|document|report|source|manual|contract|leaflet)\b.{0,30}\b(?:doesn't|does not|don't|do not|says? nothing|has nothing|nothing)\b/i

/** Who refuses speaks as the assistant and of its own abilities. */
const AS_ASSISTANT =
  /\bas an? (?:ai|artificial intelligence|language model|large language model|virtual assistant)\b|\bi(?:'m| am) (?:just |only )?an? (?:ai|language model|large language model|virtual assistant)\b|\b(?:als|bin) (?:eine?\s)?(?:ki|künstliche intelligenz|sprachmodell|ki-(?:modell|assistent\w{0,2}))\b|en tant qu['’ ](?:ia|intelligence artificielle|assistant)|\bcomo (?:una? )?(?:ia|inteligencia artificial|modelo de lenguaje)|\bcomo (?:uma? )?(?:ia|inteligência artificial|modelo de linguagem)|\bcome (?:una? )?(?:ia|intelligenza artificiale|modello linguistico)|\bals (?:een )?(?:ai|taalmodel)|я (?:искусственный интеллект|языковая модель)|作为(?:一个|一名)?(?:ai|人工智能|语言模型)|(?:ai|言語モデル)として/i

const CANNOT =
  /\b(?:i (?:can(?:no|')?t|can ?not|cannot|won't|will not|am unable to|'m unable to|am not able to|am not allowed to|must decline|have to decline|need to decline|decline to|refuse to|don't feel comfortable|do not feel comfortable|would rather not|'d rather not|don't have (?:access|the ability|enough|any information|information|personal)|do not have (?:access|the ability|enough|any information|information|personal)|have no (?:access|way|ability)|lack the (?:ability|information)|don't know (?:the answer|how)|am not comfortable|wouldn't be able|would not be able)|i'm (?:unable to|not able to|not allowed to|not comfortable|afraid (?:i|that)|not in a position)|(?:that's|this is|that is) (?:not something i can|beyond (?:my|what i)|outside (?:my|of my|what i))|not able to (?:help|assist)|against my (?:guidelines|policy|policies|programming)|beyond my (?:abilities|capabilities|scope)|ich (?:kann|darf|möchte|werde) .{0,80}\b(?:nicht|keine?n?)\b|(?:kann|darf) ich (?:\p{L}{2,14} ){0,4}(?:nicht|keine?n?)\b|je (?:ne (?:peux|suis|pourrai)|refuse)|no (?:puedo|podré|soy capaz|me es posible|tengo acceso)|non (?:posso|sono in grado|mi è possibile)|não (?:posso|consigo|sou capaz|tenho acesso)|ik kan .{0,80}\b(?:niet|geen)\b|jag kan (?:tyvärr )?inte|jeg kan (?:desværre |dessverre )?ikke|nie mogę|nemohu|nu pot|nem tudok|yapamam|yardımcı olamam|не могу|не в состоянии|无法|不能(?:提供|回答|帮助)|抱歉|お答えできません|できません|申し訳|죄송|할 수 없|لا أستطيع|لا يمكنني)/iu

/** "I'm just a virtual assistant and can't process this" */
const AND_CANNOT = /\b(?:and|so i) (?:can['’]t|cannot|can not|am unable to|am not able to)\b/i

const SORRY =
  /\b(?:i'm (?:really |very |so |truly )?sorry|i am (?:really |very |so |truly )?sorry|sorry,? (?:but |i )|i apologi[sz]e|my apologies|unfortunately,? i|i(?:'m| am) afraid|regrettably|es tut mir (?:sehr )?leid|tut mir leid|leider kann ich|leider darf ich|désolée?|malheureusement,? je|lo siento|lamento|lamentablemente|mi dispiace|purtroppo|desculpe|sinto muito|infelizmente|het spijt me|helaas kan ik|tyvärr|beklager|przepraszam|niestety|извините|к сожалению|很抱歉|对不起)/iu

/** What a helper would do and refuses to do. */
const WORK =
  /\b(?:help|assist|provide|analy[sz]e|write|create|generate|produce|make|making|tell|answer|do|comply|fulfil|fulfill|speculate|give|complete|translate|translations?|draft|discuss|process|compute|calculate|engage|perform|review|read|open|see|view|access|determine|predict|forecast|recommend|advise|offer (?:advice|an opinion|opinions|legal|medical|financial)|summari[sz]e|roast|joke|code|this request|that request|with that|with this|such|personal|real-time|übersetz\w{0,6}|helfen|schreiben|erstellen|beantworten|aider|traduire|rédiger|répondre|ayudar(?:te|le|les|os|lo)?|traducir|escribir|responder|proporcionar|aiutar\w{0,2}|tradurre|scrivere|rispondere|ajudar|traduzir|escrever|helpen|vertalen|schrijven|beantwoorden|hjälpa|hjelpe|hjælpe|pomóc|помочь)(?:s|d|ed|ing)?(?!\p{L})/iu

const GREETING =
  /^[\s*_#]*(?:dear|hi|hello|hey|good (?:morning|afternoon|evening)|to whom|thank you|thanks|subject|betreff|hallo|liebe\w?|sehr geehrte\w?|guten (?:tag|morgen)|bonjour|chère?s?|madame|monsieur|objet|hola|estimad\w{1,2}|querid\w{1,2}|buen[oa]s|ciao|gentile|buongiorno|salve|oggetto|olá|prezad\w|car[oa]|beste|geachte|hej|kære|tere|witam|szanown\w|bună|merhaba|sayın|здравствуйте|уважаем\w{1,2}|您好|こんにちは)\b/iu

/** Nobody in particular cannot: "it is impossible to say", "more data is needed", "this request falls outside…". */
const IMPERSONAL =
  /\b(?:it(?:'s| is| would be) (?:not possible|impossible|inappropriate|difficult|hard|not appropriate)(?: for me)? to|impossible to (?:say|tell|determine|answer|calculate|know)|(?:more|further|additional) (?:data|information|details?|context)(?: (?:is|are|would be))? (?:needed|required|necessary)|not enough (?:data|information|context|details?)|insufficient (?:data|information|context|details?)|without (?:more|further|additional|the|any) (?:data|information|details?|context|full)|cannot be (?:determined|calculated|computed|answered|completed|fulfilled|processed|done|provided)|can't be (?:determined|answered|done)|unable to (?:help|assist|comply|process|complete|provide|answer|generate|fulfil|fulfill|create|write|perform|determine)|(?:this|that|your) (?:request|task|question|topic|message) (?:is|falls|goes|violates|cannot|can't|has been|was|may)\s?(?:outside|beyond|against|not|be|blocked|rejected|declined|flagged)?|outside (?:of )?(?:my|the) (?:scope|area|expertise|capabilities)|against (?:my|our|the) (?:guidelines|policy|policies|rules|terms)|content (?:policy|guidelines)|(?:my|our) (?:guidelines|policies|policy|rules|programming) (?:prevent|prohibit|do not|don't)|access denied|request (?:denied|declined|rejected|refused)|no comment|i(?:'ll| will| shall| must| have to| need to)? (?:respectfully )?(?:pass|decline|refuse|abstain)|(?:please|you should|you may want to|better|best to|i'd|i would|i) (?:\w{1,10} ){0,3}(?:consult|contact|ask|see|speak to|talk to|reach out to) (?:an?|your|the|our) (?:\w{1,14} ){0,2}(?:professional|expert|specialist|lawyer|attorney|doctor|accountant|advisor|adviser|developer|consultant|astronomer|support|translator|analyst|comedian|librarian|teacher|agent|physician|engineer)|seek professional|i (?:do not|don't) (?:write|do|make|provide|offer|give|answer|translate|produce|perform|create|generate|tell|handle|have opinions|have an opinion|discuss|know)\b|not (?:something|a task|a topic) i(?:'m| am| can| will| do)?|can't (?:do|help|assist|write|tell|answer|provide)|cannot (?:do|help|assist|write|tell|answer|provide|comply|fulfil|fulfill)|das kann ich|dazu kann ich|keine (?:auskunft|antwort)|nicht möglich|(?:bin|sind) (?:ich|wir)?\s?(?:leider )?nicht in der lage|außerstande|ne (?:suis|sommes) pas en mesure|no estoy en condiciones|you should (?:look|check|search|refer|read|google|try)|(?:just|simply|please|better) (?:look|check|search|google|refer|read)\b.{0,40}\b(?:documentation|docs|online|internet|manual|web|sources?)|(?:can|may|might|could) be (?:hurtful|harmful|offensive|disrespectful|insensitive)|talk about something|something (?:positive|else|different) instead|no (?:recommendation|opinion|advice|answer|comment)\b|(?:decision|choice)s? .{0,40}\b(?:yours|up to you)|(?:is|are) (?:yours|up to you)|(?:do not|don't) have (?:an?|any|the) (?:answer|opinion|information|data|access)|(?:will not|won't) (?:give|provide|do|write|answer|share|tell|solve)|not supported|should be (?:directed|addressed|asked)|exceeds? what i|no authority|not authori[sz]ed|impossible de|es imposible|no es posible|non è possibile|não é possível|niet mogelijk)/iu

function findRefusal(task: ReadTask, output: ReadText): Finding {
  const head = withoutSpeech(output.raw.slice(0, HEAD))
  const isShort = output.raw.length < SHORT
  const sentences = sentencesOf(head).slice(0, 5)
  // A letter that was asked for may decline something in the name of its sender.
  const isGreeting = GREETING.test(head) && /^(?:writer|support)/.test(task.agentId)
  const isLetter = isGreeting && (sentences.length > 2 || DECLINED.test(task.full.raw))
  // A joke about bots may let one refuse: it speaks in quotation marks or has a label.
  const isOfBot =
    task.agentId.startsWith('comedian') &&
    /\b(?:chat)?bots?\b|\bai\b|\bassistants?\b/i.test(task.full.raw) &&
    /["“„«]|(?:^|\n)\W{0,3}\p{L}{2,12}:\s/u.test(head)
  if (isOfBot) return passed
  if (isShort && AS_ASSISTANT.test(head) && (CANNOT.test(head) || IMPERSONAL.test(head) || AND_CANNOT.test(head)))
    return failed('It speaks of being a model and declines the task.')
  const asksWho = /\b(?:who|what) are you\b|\byour name\b|\bare you (?:an? )?(?:ai|bot|human)\b/i.test(task.full.raw)
  if (isShort && !asksWho && AS_ASSISTANT.test(sentences[0] ?? ''))
    return failed('It speaks of being a model instead of answering.')
  const isJoke = task.agentId.startsWith('comedian') || task.is.creative
  const isOpenForm = OPEN_FORM.test(task.request) || (isJoke && output.words.length <= 25)
  // "Yes, every step checks out." answers a question of yes or no.
  const isYesOrNo = YES_OR_NO.test(head) && task.request.includes('?')
  const mayDecline =
    (isOpenForm && output.words.length <= 12) ||
    (isLetter && DECLINED.test(task.full.raw)) ||
    (isGreeting && PROMISES.test(task.full.raw))
  // A policy may want something declined; who does so names it.
  const isByPolicy =
    task.agentId.startsWith('support') && FORBIDS.test(task.full.raw) && answerFeatures(task, output).shared_count! > 0
  const threshold = mayDecline
    ? Number.POSITIVE_INFINITY
    : isGreeting || isByPolicy
      ? DECLINES_IN_LETTER + (isByPolicy ? 1 : 0)
      : isYesOrNo || EDITS.test(task.request) || isOpenForm
        ? DECLINES_IN_FORM
        : DECLINES
  // A few words, and jokes, in languages without vectors give the model little to go by.
  const isSlight = (output.words.length < 12 || isJoke) && answerFeatures(task, output).english === 0
  const score = task.isVague || task.lacksMaterial ? undefined : scoreDeclining(task, output)
  const least = isSlight || !canDecline(task, output) ? Math.max(threshold, DECLINES_IN_FORM) : threshold
  if (score !== undefined && score > least) return failed('It talks around the task instead of doing it.')
  // A joke may let somebody refuse.
  if (task.agentId.startsWith('comedian') && /^["“„«—–]/.test(head)) return passed
  if (task.is.creative && /\b(?:refus|declin)\p{L}{0,5}\b/iu.test(task.request)) return passed
  // A text that is to be reworded may itself decline something.
  if (task.is.translation || (EDITS.test(task.request) && DECLINED.test(task.material || task.full.raw))) return passed
  if (!isShort || isLetter || task.lacksMaterial || (task.isVague && !SORRY.test(head))) return passed
  if (task.is.quotation && /^["'“„«‘]/.test(head)) return passed
  if (isByPolicy && sentences.length >= 2) return passed
  // "The sheet says nothing of gluten, so I can't promise it" has the phrases and answers: the model has to agree.
  const [first = ''] = sentences
  const declinesFirst = CANNOT.test(first) && WORK.test(first)
  if (score !== undefined && score <= 0 && !(declinesFirst && !(ABSENT.test(first) && sentences.length > 1)))
    return passed
  const opening = sentences.slice(0, 2).join(' ')
  const isOwn = CANNOT.test(opening) && WORK.test(opening)
  if (isOwn && (SORRY.test(opening) || (isMostlyRefusal(sentences) && !hasSubstance(task, output))))
    return failed('It declines the task.')
  if ((IMPERSONAL.test(opening) || isOwn) && isMostlyRefusal(sentences) && !hasSubstance(task, output))
    return failed('It declines the task.')
  const isEvasive =
    sentences.every((sentence) => EVASIVE.test(sentence) || FILLER.test(sentence) || ELSEWHERE.test(sentence)) &&
    sentences.some((sentence) => EVASIVE.test(sentence))
  if (isEvasive && output.words.length <= 45 && !hasSubstance(task, output))
    return failed('It speaks about the question instead of answering it.')
  if (
    /^(?:no|nope|pass|sorry|nein|non|désolé|lo siento|n\/a|none|skip)[.!,]?(?: sorry| thanks| thank you)?[.!]*$/i.test(
      output.raw.trim(),
    ) &&
    !/^(?:is|are|does|do|can|could|will|was|were|has|have|should|did|ist|sind|est-ce|es|è)\b|\?|\bor\b|yes/i.test(
      task.full.raw.trim(),
    )
  )
    return failed('It declines the task.')
  return passed
}

/** What somebody else says is no refusal of the writer; where little else is said, it counts. */
function withoutSpeech(text: string): string {
  let rest = ''
  let at = 0
  for (const quote of quotedPassages(text, 200)) {
    if (wordsOf(quote.text).length < 4) continue
    rest += `${text.slice(at, quote.start)} … `
    at = quote.end
  }
  if (at === 0) return text
  rest += text.slice(at)
  return wordsOf(rest).length >= 8 ? rest : text
}

/** Says something about the question instead of answering it. */
const EVASIVE =
  /\b(?:(?:really |largely |entirely )?depends (?:on|upon)|it depends|many ways|several (?:ways|approaches|factors|options)|many (?:factors|variables|aspects)|various factors|(?:is|are) (?:a |an )?(?:very |highly |quite )?(?:complex|subjective|fascinating|powerful|critical|important|interesting|nuanced|personal|individual|tricky)|both (?:options |choices |of them )?have|pros and cons|advantages and disadvantages|individual situation|varies|interesting question|great question|would not want to mislead|requires (?:a )?careful|should be done|would (?:first )?need to (?:understand|know)|best to test|no one-size|kommt (?:ganz )?darauf an|hängt .{0,40} ab|dépend de|depende de|dipende da)\b/iu

/** Code, figures that the task does not give, a list or a table: there is an answer beside the excuse. */
const hasSubstance = (task: ReadTask, output: ReadText) =>
  splitFences(output.raw).blocks.length > 0 ||
  output.lines.filter((line) => /^(?:[-*•|]|\d{1,2}[.)])/.test(line)).length >= 2 ||
  (output.raw.match(/\d+(?:[.,]\d+)*/g) ?? []).some((number) => !task.full.raw.includes(number))

const ELSEWHERE =
  /\b(?:please (?:consult|contact|refer|provide|share|try|search)|consult|try to|yourself\b|search online|you (?:may|might|could) want to|i (?:suggest|recommend) (?:you |that you )?(?:consult|contact|talk|speak|see|check|ask)|is there (?:something|anything) else|let me know if|feel free|if you (?:have|need|would like)|happy to help|could you|can you|wenden sie sich|veuillez|consulte|por favor)\b/iu

/** Nothing is left once the sentences that decline, apologise or send elsewhere are taken away. */
const isMostlyRefusal = (sentences: readonly string[]) =>
  sentences.filter(
    (sentence) =>
      !(
        CANNOT.test(sentence) ||
        IMPERSONAL.test(sentence) ||
        SORRY.test(sentence) ||
        ELSEWHERE.test(sentence) ||
        AS_ASSISTANT.test(sentence)
      ),
  ).length *
    2 <=
  sentences.length - 1

const CLARIFYING =
  /\b(?:would you like|do you (?:want|need|have|mean|prefer)|could you|can you|please (?:provide|share|tell|specify|clarify|let me know|paste|describe)|tell me|let me know|let's clarify|what (?:tone|style|kind|type|is your|are your|is the (?:purpose|context|audience|goal|length|topic|budget|target)|exactly|format|would|do you|topic|language|length|level|details|budget|platform|version|sort)|who is (?:the|your)|which (?:one|format|tone|style|version|language|aspect|of|do you|would)|how (?:long|many words|formal|detailed|much|would you|do you)|more (?:details?|information|context|specific)|need to know|need more|a (?:few|couple of) (?:questions|details|things)|should (?:it|i|the)|are you looking|before i (?:start|begin|can|write|answer)|möchten sie|können sie|könnten sie|welche\w?|mehr (?:informationen|details)|pourriez-vous|pouvez-vous|quel(?:le)? (?:ton|style|type|est)|plus de (?:détails|précisions|contexte)|podría|puede\w? (?:dar|proporcionar|decir|indicar)|qué (?:tipo|tono|estilo)|más (?:detalles|información)|potrebbe|può|che (?:tipo|tono)|poderia|pode|que tipo|mais (?:detalhes|informações)|kunt u|kun je)/iu

const FILLER =
  /^(?:(?:sure|of course|certainly|absolutely|happy to help|i(?:'?d| would) be (?:happy|glad|delighted) to|great|gladly|gerne|bien sûr|avec plaisir|con mucho gusto|volentieri|com prazer|claro|certo|natürlich|good question|that depends|it depends|das kommt darauf an|ça dépend|depende|dipende|thanks|thank you|interesting)\b.{0,140}|(?:hello|hi|okay|ok)\b.{0,24}|.{0,60}:)$/iu

const WANTS_TEXT_PASTED =
  /\bplease (?:paste|provide|share|send|upload|attach)\b.{3,120}\b(?:i(?:'ll| will| can)|me to)\b/i

function findQuestionBack(task: ReadTask, output: ReadText): Finding {
  if (task.isVague || task.lacksMaterial || task.is.questions || task.is.translation || output.raw.length > SHORT)
    return passed
  // A question that was to be reworded stays one.
  if (EDITS.test(task.request)) return passed
  // Who answers a customer may ask them for something.
  if (task.agentId.startsWith('support') && (GREETING.test(output.raw) || sentencesOf(output.raw).length > 3))
    return passed
  const sentences = sentencesOf(output.raw)
  const isAsking = (sentence: string) => /[?？؟]["”’)\s]*$/.test(sentence) && CLARIFYING.test(sentence)
  const asksFor = (sentence: string) =>
    /\b(?:please|i (?:would |'d |will |'ll )?need|need to know|bitte|veuillez|por favor|tell me|let me know)\b/iu.test(
      sentence,
    ) && CLARIFYING.test(sentence)
  const isQuestion = (sentence: string) => /[?？؟]["”’)\s]*$/.test(sentence)
  if (!sentences.some((sentence) => isAsking(sentence) || asksFor(sentence))) return passed
  // Numbered questions end in a question mark too; what is neither a question nor a courtesy is an answer.
  const rest = sentences.filter(
    (sentence) =>
      !isQuestion(sentence) &&
      !asksFor(sentence) &&
      !FILLER.test(sentence) &&
      !CANNOT.test(sentence) &&
      !SORRY.test(sentence),
  )
  const fault = failed('It asks for what the task already says, instead of answering.')
  if (rest.length > 0) return passed
  // "Please paste the complaints, and I will …", below a task that has them
  const asksForText = sentences.some((sentence) => WANTS_TEXT_PASTED.test(sentence))
  if (asksForText && task.material !== '' && !/^(?:writer|support)/.test(task.agentId)) return fault
  return scoreDeclining(task, output) > LEANS_TO_DECLINING ? fault : doubt(fault)
}

function findEcho(task: ReadTask, output: ReadText): Finding {
  const words = task.full.words
  if (words.length < 4) return passed
  const text = plainText(output.raw)
  if (text === words.join(' ')) return failed('It repeats the task.')
  if (task.is.translation && output.words.length >= 2 && words.join(' ').endsWith(text))
    return failed('It repeats the text that was to be translated.')
  if (words.length <= 400 && output.words.length <= words.length + 6 && output.words.length >= words.length * 0.7) {
    const request = words.slice(0, Math.min(8, words.length)).join(' ')
    const share = output.words.filter((word) => words.includes(word)).length / output.words.length
    if (text.includes(request) && share > 0.9) return failed('It repeats the task.')
  }
  if (
    (task.is.summary || task.is.creative) &&
    task.material &&
    text === plainText(task.material) &&
    text.split(' ').length > 5
  )
    return failed('It repeats the text that it was given.')
  return passed
}

const ANNOUNCEMENT =
  /^(?:sure|of course|certainly|absolutely|okay|ok|great|no problem|gladly|gerne|bien sûr|claro|natürlich|voici|hier (?:ist|sind)|aquí (?:está|tiene\w?)|ecco|here(?:'s| is| are| you go)|below (?:is|are|you)|i(?:'ve| have) (?:written|prepared|created|attached|completed|analy[sz]ed|reviewed|fixed|drafted|translated|summari[sz]ed|calculated|finished|done)|i(?:'ll| will) (?:now |start|get|begin|work|look|write|prepare|analy[sz]e)|the (?:task|request|text|code|report|analysis|summary|translation|table|e-?mail) (?:has been|is|was) (?:done|completed?|finished|processed|ready|attached|below|written)|done|task complete|(?:your|the) .{1,60} (?:is|are) (?:ready|attached|below|complete)|see (?:the )?attach|as requested|let me know|i hope|hope this|feel free|working on|one moment|please (?:wait|find)|loading|processing)\b/i

/** The text is there, and the answer asks for it. */
const ASKS_FOR_TEXT =
  /\b(?:did(?: not|n['’]t) come through|(?:is|are|was|were) (?:missing|not (?:included|attached))|(?:was|were|is)n['’]t (?:included|attached)|(?:can['’]?t|cannot|do(?: not|n['’]t)) (?:see|find) (?:any|the|a|your))\b[^\n]{0,160}\b(?:paste|send|share|provide|attach|include)\b/i

const OFFER =
  /\b(?:sag (?:mir )?(?:einfach )?bescheid|wenn ich loslegen soll|soll ich (?:loslegen|anfangen|beginnen))\b|\blet me know (?:when|if|once|whether) (?:you(?:'d| would) (?:like|want)|you want|you need) me to (?:start|begin|draft|write|go ahead|put)\b|\b(?:shall|should) i (?:go ahead|start|begin) (?:and|writing|drafting|with)\b/i
const BEFORE_WORK =
  /\bbefore i (?:try|start|begin|write|draft|do|answer|give|get going)\b.{0,60}\b(?:help\w{0,3}|need|like|love|have) to know\b/i

const BEFORE_DRAFT =
  /^\W{0,3}before i (?:can )?(?:draft|write|answer|start|begin|prepare)\b[^.?!\n]{0,60}\b(?:could|can|would|will) you (?:tell|share|let|give|send)\b/i
const MUST_DECLINE = /(?:^|[,.] )(?:so )?(?:i must decline|it would not be right for me to)\b/i

/** "It could start with … Let me know when you would like me to begin", "Before I try, it'd help to know your audience". */
function findOffer(task: ReadTask, output: ReadText): Finding {
  if (task.isVague || task.lacksMaterial || task.is.questions || output.words.length > 80 || hasSubstance(task, output))
    return passed
  const [last = ''] = sentencesOf(output.raw).slice(-1)
  const isRefusal =
    WOULD_HELP_BUT.test(output.raw) && sentencesOf(output.raw).length <= 4 && !DECLINED.test(task.full.raw)
  if (
    !task.agentId.startsWith('support') &&
    wordsOf(task.material).length >= 8 &&
    output.words.length <= 60 &&
    ASKS_FOR_TEXT.test(output.raw)
  )
    return failed('It asks for a text that the task has.')
  const isOffer =
    OFFER.test(last) && /\b(?:could|might|would|sollte|könnte|würde)\b/i.test(output.raw.slice(0, -last.length))
  if (BEFORE_DRAFT.test(output.raw) || MUST_DECLINE.test(output.raw))
    return DECLINED.test(task.full.raw) || EDITS.test(task.request)
      ? passed
      : failed('It talks around the task instead of doing it.')
  const isQuestion = BEFORE_WORK.test(output.raw) && output.raw.trim().endsWith('?')
  return isOffer || isQuestion || isRefusal ? failed('It talks around the task instead of doing it.') : passed
}

/** "I will prepare a suitable answer", "je vais rédiger un tweet": the work and its verb, for later. */
const PROMISE =
  /\b(?:i'll|i will|i'm going to|we'll|we will|and will|je vais|ich werde|voy a|vou|sto per)\s(?:\p{L}{1,12} ){0,2}(?:write|prepare|draft|compose|deliver|send|produce|put together|work on|finish|create|provide|rédiger|écrire|préparer|escribir|redactar|preparar|escrever|(?=[^.!?\n]{0,90} (?:schreiben|erstellen|verfassen|vorbereiten)\b))([^.!?\n]{0,90})/iu
const LATER =
  /\b(?:shortly|soon|in a moment|in a minute|as soon as|once|later|tomorrow|in good time|ready|within|right away|on it|by (?:the end|mon|tues|wednes|thurs|fri|tonight|noon)|bien noté|dès que|gleich|bald|sobald|in kürze|pronto|enseguida|em breve|a breve)\b/iu
const ORDER =
  /\b(?:write|draft|compose|prepare|give me|create|make|need|écris|rédige|écrivez|rédigez|schreib\w{0,2}|verfasse|escribe|redacta|escreva|scrivi)\s(?:[\p{L}\d-]{1,16} ){0,4}?(?:a|an|the|un|une|le|la|eine?n?|den|die|das|una|el|um|uma)\s((?:[\p{L}\d-]{1,16} ?){1,4})/iu

/** The very text that the task wants is promised for later. */
function findPromise(task: ReadTask, output: ReadText): Finding {
  if (task.isVague || task.lacksMaterial || output.words.length > 80 || output.lines.length > 3) return passed
  const promised = PROMISE.exec(output.raw)?.[1]
  if (promised === undefined || !LATER.test(output.raw) || hasSubstance(task, output)) return passed
  // Whoever is greeted gets the text itself.
  if (GREETING.test(output.raw) && !/^\W{0,4}thank/i.test(output.raw)) return passed
  const orderedWords = wordsOf(ORDER.exec(task.request)?.[1] ?? '')
  const isReply = /\b(?:reply|answer|respond|antwort\w{0,3}|répond\w{0,3}|respond\w{1,2}|rispond\w)\b/i.test(
    task.request,
  )
  return wordsOf(promised).some(
    (word) =>
      (word.length > 3 && orderedWords.includes(word)) ||
      (isReply && /^(?:reply|answer|response|antwort|réponse|respuesta)$/.test(word)),
  )
    ? failed('It promises the answer for later.')
    : passed
}

const PLANS_TO_ANSWER =
  /^\W{0,3}(?:i(?:'ll| will| would)|ich (?:werde|würde)|je vais|voy a|vou|risponderò)(?!\p{L})[^.!?\n]{0,60}(?<!\p{L})(?:reply|answer|respond|write back|antworten|beantworten|zurückschreiben|répondre|responder|contestar|rispondere)(?!\p{L})/iu

/** "I will answer the customer, name the time limit and …": what somebody would write, and not a figure of it. */
function findPlanToAnswer(task: ReadTask, output: ReadText): Finding {
  if (!/^(?:support|writer)/.test(task.agentId) || task.isVague || output.words.length > 60) return passed
  if (!PLANS_TO_ANSWER.test(output.raw) || /\d/.test(output.raw) || !/\d/.test(task.full.raw)) return passed
  return PROMISES.test(task.request) ? passed : failed('It says how it would answer instead of answering.')
}

/** "Sure, here is your summary:" and then nothing. */
function findAnnouncement(task: ReadTask, output: ReadText): Finding {
  if (task.isVague || output.words.length > 60 || output.words.length < 1) return passed
  const sentences = sentencesOf(output.raw)
  const isAnnouncing = sentences.every((sentence) => ANNOUNCEMENT.test(sentence) && wordsOf(sentence).length <= 22)
  // A sentence that names what it found is an answer: "Here is the total: 41."
  const isEmpty = isAnnouncing && !/:\s{0,3}\S/.test(output.raw.replace(/:\s*$/, '')) && !/\d/.test(output.raw)
  return isEmpty &&
    !/\b(?:say|write|reply|answer|confirm\w{0,6}|acknowledg\w{1,4}|message|e-?mail|note|text)\b/i.test(task.request)
    ? failed('It announces an answer and gives none.')
    : /:\s*$/.test(output.raw.trim()) && isAnnouncing
      ? failed('It announces an answer and gives none.')
      : passed
}

const WANTS_FIGURE =
  /\b(?:sum|total|average|mean|median|how (?:much|many)|percent(?:age)?|calculate|compute|convert|add up|subtract|multiply|divide|growth rate|standard deviation|break-?even|what(?:'s| is) \d|summe|durchschnitt|berechne|wie viele?|moyenne|somme|combien|calcul\w{0,3}|promedio|suma|cuánt\w{1,3}|media|somma|quant\w{1,2})\b/i

/** A calculation was asked for, with its figures, and the answer has no figure at all. */
function findMissingFigure(task: ReadTask, output: ReadText): Finding {
  if (
    !/^(?:analyst|default)/.test(task.agentId) ||
    task.code ||
    task.lacksMaterial ||
    task.is.creative ||
    task.is.translation
  )
    return passed
  if (YES_OR_NO.test(output.raw) && task.request.includes('?')) return passed
  if (!WANTS_FIGURE.test(task.request) || (task.full.raw.match(/\d+/g)?.length ?? 0) < 2) return passed
  const hasFigure =
    /\d|\p{Script=Han}/u.test(output.raw) ||
    output.words.some(
      (word) =>
        numberOfWord(word) !== undefined ||
        /^(?:half|quarter|third|double|twice|zero|none|hundred|thousand|(?:twen|thir|for|fif|six|seven|eigh|nine)ty)/.test(
          word,
        ),
    )
  return hasFigure ? passed : failed('A figure was asked for and there is none.')
}

const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u

const BEFORE_TRANSLATING =
  /\b(?:before|once|as soon as) (?:i|you)\b.{0,80}\b(?:translat|version)|\bcould you (?:first )?(?:tell|let) me\b.{0,200}\?|\bi(?:'d| would) (?:need|like) to know\b|\bi (?:can't|cannot|am unable to|'m unable to) translate\b|\bbevor ich\b.{0,80}\bübersetz/i

/** Talk about the translation, with words that its text cannot have. */
const findTalkOfTranslation = (task: ReadTask, output: ReadText): Finding =>
  task.is.translation &&
  BEFORE_TRANSLATING.test(output.raw.slice(0, HEAD)) &&
  /\b(?:translat\w{1,6}|übersetz\w{0,4})\b/i.test(output.raw) &&
  !/\b(?:translat\w{1,6}|übersetz\w{0,4}|tradu\w{1,6})\b/i.test(task.material)
    ? failed('It speaks of the translation instead of giving it.')
    : passed

/** A translation that has less than two fifths of the words of its text. */
function findShortTranslation(task: ReadTask, output: ReadText): Finding {
  if (!task.is.translation || task.is.summary) return passed
  const words = wordsOf(task.material).length
  const isSpaced = !UNSPACED.test(task.material) && !UNSPACED.test(output.raw)
  return isSpaced && words >= 15 && output.words.length < 0.4 * words
    ? failed('It leaves out most of the text to be translated.')
    : passed
}
