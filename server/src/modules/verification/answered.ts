import { canDecline, scoreDeclining } from './answer-model.ts'
import { findFiller } from './filler.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { detectLanguage, sameLanguage } from './languages.ts'
import { numberOfWord } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { plainText, quotedPassages, type ReadText, sentencesOf, splitFences, trimMarks, wordsOf } from './text.ts'
import { rankOf } from './word-meaning.ts'

/** Is there an answer at all? A refusal, a question back, an echo of the task and an unfilled template are none. */
export const checkAnswered = (task: ReadTask, output: ReadText): Finding =>
  combine([
    findRefusal(task, output),
    findQuestionBack(task, output),
    findEcho(task, output),
    findPlaceholders(task, output),
    findFiller(task, output),
    findAnnouncement(task, output),
    findMissingFigure(task, output),
  ])

const EDITS =
  /\b(?:rewrite|rephrase|reword|shorten|concise|correct|proof-?read|polite\w{0,2}|passive|formal\w{0,2}|simplif\w{1,3}|paraphrase|repeat|echo)\b/i
const DECLINED =
  /\b(?:not|can't|cannot|unable|never|won't|sorry|unfortunately|nicht|kein\w{0,2}|leider|pas|désolée?|no puedo|non posso)\b/i
/** Short forms that have few words of the task. */
const OPEN_FORM =
  /\b(?:quote|motto|titles?|slogans?|taglines?|headlines?|line|one-?liner|stor(?:y|ies)|poems?|haikus?|captions?|puns?|names?|lyrics|verse)\b/i
/** The score of the model over which a text counts as a refusal. */
const DECLINES = 1
const HEAD = 700
const SHORT = 650

/** Who refuses speaks as the assistant and of its own abilities. */
const AS_ASSISTANT =
  /\bas an? (?:ai|artificial intelligence|language model|large language model|virtual assistant)\b|\bi(?:'m| am) (?:just |only )?an? (?:ai|language model|large language model|virtual assistant)\b|\b(?:als|bin) (?:eine?\s)?(?:ki|künstliche intelligenz|sprachmodell|ki-(?:modell|assistent\w{0,2}))\b|en tant qu['’ ](?:ia|intelligence artificielle|assistant)|\bcomo (?:una? )?(?:ia|inteligencia artificial|modelo de lenguaje)|\bcomo (?:uma? )?(?:ia|inteligência artificial|modelo de linguagem)|\bcome (?:una? )?(?:ia|intelligenza artificiale|modello linguistico)|\bals (?:een )?(?:ai|taalmodel)|я (?:искусственный интеллект|языковая модель)|作为(?:一个|一名)?(?:ai|人工智能|语言模型)|(?:ai|言語モデル)として/i

const CANNOT =
  /\b(?:i (?:can(?:no|')?t|can ?not|cannot|won't|will not|am unable to|'m unable to|am not able to|am not allowed to|must decline|have to decline|need to decline|decline to|refuse to|don't feel comfortable|do not feel comfortable|would rather not|'d rather not|don't have (?:access|the ability|enough|any information|information|personal)|do not have (?:access|the ability|enough|any information|information|personal)|have no (?:access|way|ability)|lack the (?:ability|information)|don't know (?:the answer|how)|am not comfortable|wouldn't be able|would not be able)|i'm (?:unable to|not able to|not allowed to|not comfortable|afraid (?:i|that)|not in a position)|(?:that's|this is|that is) (?:not something i can|beyond (?:my|what i)|outside (?:my|of my|what i))|not able to (?:help|assist)|against my (?:guidelines|policy|policies|programming)|beyond my (?:abilities|capabilities|scope)|ich (?:kann|darf|möchte|werde) .{0,80}\b(?:nicht|keine?n?)\b|je (?:ne (?:peux|suis|pourrai)|refuse)|no (?:puedo|podré|soy capaz|me es posible|tengo acceso)|non (?:posso|sono in grado|mi è possibile)|não (?:posso|consigo|sou capaz|tenho acesso)|ik kan .{0,80}\b(?:niet|geen)\b|jag kan (?:tyvärr )?inte|jeg kan (?:desværre |dessverre )?ikke|nie mogę|nemohu|nu pot|nem tudok|yapamam|yardımcı olamam|не могу|не в состоянии|无法|不能(?:提供|回答|帮助)|抱歉|お答えできません|できません|申し訳|죄송|할 수 없|لا أستطيع|لا يمكنني)/iu

const SORRY =
  /\b(?:i'm (?:really |very |so |truly )?sorry|i am (?:really |very |so |truly )?sorry|sorry,? (?:but |i )|i apologi[sz]e|my apologies|unfortunately,? i|i(?:'m| am) afraid|regrettably|es tut mir (?:sehr )?leid|tut mir leid|leider kann ich|leider darf ich|désolée?|malheureusement,? je|lo siento|lamento|lamentablemente|mi dispiace|purtroppo|desculpe|sinto muito|infelizmente|het spijt me|helaas kan ik|tyvärr|beklager|przepraszam|niestety|извините|к сожалению|很抱歉|对不起)/iu

/** What a helper would do and refuses to do. */
const WORK =
  /\b(?:help|assist|provide|analy[sz]e|write|create|generate|produce|make|making|tell|answer|do|comply|fulfil|fulfill|speculate|give|complete|translate|translations?|draft|discuss|process|compute|calculate|engage|perform|review|read|open|see|view|access|determine|predict|forecast|recommend|advise|offer (?:advice|an opinion|opinions|legal|medical|financial)|summari[sz]e|roast|joke|code|this request|that request|with that|with this|such|personal|real-time|übersetz\w{0,6}|helfen|schreiben|erstellen|beantworten|aider|traduire|rédiger|répondre|ayudar|traducir|escribir|responder|proporcionar|aiutar\w{0,2}|tradurre|scrivere|rispondere|ajudar|traduzir|escrever|helpen|vertalen|schrijven|hjälpa|hjelpe|hjælpe|pomóc|помочь)/iu

const GREETING =
  /^[\s*_#]*(?:dear|hi|hello|hey|good (?:morning|afternoon|evening)|to whom|thank you|thanks|subject|betreff|hallo|liebe\w?|sehr geehrte\w?|guten (?:tag|morgen)|bonjour|chère?s?|madame|monsieur|objet|hola|estimad\w{1,2}|querid\w{1,2}|buen[oa]s|ciao|gentile|buongiorno|salve|oggetto|olá|prezad\w|car[oa]|beste|geachte|hej|kære|tere|witam|szanown\w|bună|merhaba|sayın|здравствуйте|уважаем\w{1,2}|您好|こんにちは)\b/iu

/** Nobody in particular cannot: "it is impossible to say", "more data is needed", "this request falls outside…". */
const IMPERSONAL =
  /\b(?:it(?:'s| is| would be) (?:not possible|impossible|inappropriate|difficult|hard|not appropriate)(?: for me)? to|impossible to (?:say|tell|determine|answer|calculate|know)|(?:more|further|additional) (?:data|information|details?|context)(?: (?:is|are|would be))? (?:needed|required|necessary)|not enough (?:data|information|context|details?)|insufficient (?:data|information|context|details?)|without (?:more|further|additional|the|any) (?:data|information|details?|context|full)|cannot be (?:determined|calculated|computed|answered|completed|fulfilled|processed|done|provided)|can't be (?:determined|answered|done)|unable to (?:help|assist|comply|process|complete|provide|answer|generate|fulfil|fulfill|create|write|perform|determine)|(?:this|that|your) (?:request|task|question|topic|message) (?:is|falls|goes|violates|cannot|can't|has been|was|may)\s?(?:outside|beyond|against|not|be|blocked|rejected|declined|flagged)?|outside (?:of )?(?:my|the) (?:scope|area|expertise|capabilities)|against (?:my|our|the) (?:guidelines|policy|policies|rules|terms)|content (?:policy|guidelines)|(?:my|our) (?:guidelines|policies|policy|rules|programming) (?:prevent|prohibit|do not|don't)|access denied|request (?:denied|declined|rejected|refused)|no comment|i(?:'ll| will| shall| must| have to| need to)? (?:respectfully )?(?:pass|decline|refuse|abstain)|(?:please|you should|you may want to|better|best to|i'd|i would|i) (?:\w{1,10} ){0,3}(?:consult|contact|ask|see|speak to|talk to|reach out to) (?:an?|your|the|our) (?:\w{1,14} ){0,2}(?:professional|expert|specialist|lawyer|attorney|doctor|accountant|advisor|adviser|developer|consultant|astronomer|support|translator|analyst|comedian|librarian|teacher|agent|physician|engineer)|seek professional|i (?:do not|don't) (?:write|do|make|provide|offer|give|answer|translate|produce|perform|create|generate|tell|handle|have opinions|have an opinion|discuss|know)\b|not (?:something|a task|a topic) i(?:'m| am| can| will| do)?|can't (?:do|help|assist|write|tell|answer|provide)|cannot (?:do|help|assist|write|tell|answer|provide|comply|fulfil|fulfill)|das kann ich|dazu kann ich|keine (?:auskunft|antwort)|nicht möglich|(?:bin|sind) (?:ich|wir)?\s?(?:leider )?nicht in der lage|außerstande|ne (?:suis|sommes) pas en mesure|no estoy en condiciones|you should (?:look|check|search|refer|read|google|try)|(?:just|simply|please|better) (?:look|check|search|google|refer|read)\b.{0,40}\b(?:documentation|docs|online|internet|manual|web|sources?)|(?:can|may|might|could) be (?:hurtful|harmful|offensive|disrespectful|insensitive)|talk about something|something (?:positive|else|different) instead|no (?:recommendation|opinion|advice|answer|comment)\b|(?:decision|choice)s? .{0,40}\b(?:yours|up to you)|(?:is|are) (?:yours|up to you)|(?:do not|don't) have (?:an?|any|the) (?:answer|opinion|information|data|access)|(?:will not|won't) (?:give|provide|do|write|answer|share|tell|solve)|not supported|should be (?:directed|addressed|asked)|exceeds? what i|no authority|not authori[sz]ed|impossible de|es imposible|no es posible|non è possibile|não é possível|niet mogelijk)/iu

function findRefusal(task: ReadTask, output: ReadText): Finding {
  const head = output.raw.slice(0, HEAD)
  const isShort = output.raw.length < SHORT
  const sentences = sentencesOf(head).slice(0, 5)
  // A letter that was asked for may decline something in the name of its sender.
  const isLetter = GREETING.test(head) && sentences.length > 2 && /^(?:writer|support)/.test(task.agentId)
  if (isShort && AS_ASSISTANT.test(head) && (CANNOT.test(head) || IMPERSONAL.test(head)))
    return failed('It speaks of being a model and declines the task.')
  const asksWho = /\b(?:who|what) are you\b|\byour name\b|\bare you (?:an? )?(?:ai|bot|human)\b/i.test(task.full.raw)
  if (isShort && !asksWho && AS_ASSISTANT.test(sentences[0] ?? ''))
    return failed('It speaks of being a model instead of answering.')
  const isOpenForm = OPEN_FORM.test(task.request)
  const threshold = isOpenForm ? (output.words.length <= 12 ? Number.POSITIVE_INFINITY : 2 * DECLINES) : DECLINES
  if (!isLetter && canDecline(task, output) && scoreDeclining(task, output) > threshold)
    return failed('It talks around the task instead of doing it.')
  // A joke may let somebody refuse.
  if (task.agentId.startsWith('comedian') && /^["“„«—–]/.test(head)) return passed
  // A text that is to be reworded may itself decline something.
  if (task.is.translation || (EDITS.test(task.request) && DECLINED.test(task.material || task.full.raw))) return passed
  if (!isShort || isLetter || task.lacksMaterial || (task.isVague && !SORRY.test(head))) return passed
  const opening = sentences.slice(0, 2).join(' ')
  const isOwn = CANNOT.test(opening) && WORK.test(opening)
  if (isOwn && (SORRY.test(opening) || (isMostlyRefusal(sentences) && !hasSubstance(task, output))))
    return failed('It declines the task.')
  if ((IMPERSONAL.test(opening) || isOwn) && isMostlyRefusal(sentences) && !hasSubstance(task, output))
    return failed('It declines the task.')
  const isEvasive =
    sentences.every((sentence) => EVASIVE.test(sentence) || FILLER.test(sentence) || ELSEWHERE.test(sentence)) &&
    sentences.some((sentence) => EVASIVE.test(sentence))
  if (
    /\b(?:pick|choose|recommend|name|which) (?:just |only |exactly )?one\b|\bone first\b|\bpick one\b/i.test(
      task.request,
    ) &&
    /\b(?:either|both)\b/i.test(output.raw) &&
    /\b(?:depend\w{0,3}|up to you|what you like|prefer|your decision|merits|advantages)\b/i.test(output.raw) &&
    output.words.length <= 60 &&
    !/\b(?:i(?:'d| would)? (?:recommend|choose|pick|go)|choose|go (?:with|for)|start with|recommend)\b/i.test(
      output.raw,
    )
  )
    return failed('It chooses none of what it was to choose from.')
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
  /^(?:(?:sure|of course|certainly|absolutely|happy to help|i'?d be happy to|great|gladly|gerne|bien sûr|claro|certo|natürlich|good question|that depends|it depends|das kommt darauf an|ça dépend|depende|dipende|thanks|thank you|interesting)\b.{0,140}|(?:hello|hi|okay|ok)\b.{0,24}|.{0,60}:)$/iu

function findQuestionBack(task: ReadTask, output: ReadText): Finding {
  if (task.isVague || task.lacksMaterial || task.is.questions || task.is.translation || output.raw.length > SHORT)
    return passed
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
  return rest.length === 0 ? failed('It asks for what the task already says, instead of answering.') : passed
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

const SLOT_WORDS =
  /^(?:insert|enter|add|your|the|my|our|customer|client|company|recipient|sender|first|last|full|hiring|manager|name|date|day|time|product|price|amount|number|position|title|job|role|field|industry|city|address|email|e-mail|phone|link|url|x+|y+|placeholder|topic|subject|adjective|noun|verb|hobby|age|target|category|benefit|competitor|differentiator|need|feature|reason|details?|description|example|text|here|tbd|todo|business|brand|team|agent|order|tracking|month|year|event|location|venue|signature|value|metric|goal|audience|problem|solution|ihr|dein|vorname|nachname|datum|firma|unternehmen|ort|betrag|kunde|votre|prénom|nom|entreprise|société|tu|su|nombre|fecha|empresa|cliente|producto|precio|nome|data|azienda|prodotto|prezzo|seu|sua|naam|datum|bedrijf)$/iu

/** `[Your Name]`, `{{customer}}`, `<company>`, lorem ipsum, "your code here": an answer that is still to be filled in. */
function findPlaceholders(task: ReadTask, output: ReadText): Finding {
  if (task.is.template) return notApplicable
  const { prose: text, blocks } = splitFences(output.raw)
  const prose = text.replace(/`[^`\n]{1,300}`/g, ' ')
  if (/\blorem ipsum\b/i.test(output.raw) && !/\blorem\b/i.test(task.full.raw))
    return failed('It contains filler text.')
  for (const { code } of blocks) {
    const fault = findCodePlaceholder(code, task)
    if (fault) return failed(fault)
  }
  if (/\b(?:TODO|FIXME)\b/.test(prose) && !/\btodo\b/i.test(task.full.raw))
    return failed('It leaves a place to be filled in.')
  if (
    prose.length < 60 &&
    /^[-*#\d. ]{0,8}(?:\p{L}{1,20}: ?)?(?:tbd|todo|n\/a|\.{3}|…|-{1,5})[. ]{0,5}$/iu.test(prose.trim()) &&
    blocks.length === 0
  )
    return failed('It says that the answer is still to come.')
  const phrase = task.lacksMaterial || task.isVague ? undefined : PLACEHOLDER_PHRASE.exec(prose)?.[0]
  if (phrase && !task.full.raw.toLowerCase().includes(phrase.toLowerCase()))
    return failed('It leaves a place to be filled in.')
  if (
    /(?<![\p{L}\d])(?:[XYZ]{1,3} ?%|[$€£] ?[XYZ]{1,4}(?![\p{L}\d])|X{2,}(?![\p{L}\d])|[XYZ] (?:days|weeks|months|years|units|euros|dollars|customers|percent)\b)/u.test(
      prose,
    ) &&
    !/(?<![\p{L}\d])(?:[XYZ]|X{2,})(?![\p{L}\d])/u.test(task.full.raw)
  )
    return failed('It has letters where figures belong.')
  const slots = findSlots(prose).filter((slot) => !task.full.raw.includes(slot))
  if (slots.length === 0) return passed
  // The name of a sender that the task does not give.
  const tail = prose.trimEnd().slice(-80)
  const isSignature =
    slots.length === 1 &&
    tail.includes(slots[0]!) &&
    /(?:your|my|sender|ihr|dein|votre|tu|su|il tuo|seu)?\s?(?:name|nom|nombre|nome)/iu.test(slots[0]!)
  return isSignature ? passed : failed(`It leaves ${slots.length === 1 ? 'a slot' : `${slots.length} slots`} unfilled.`)
}

const PLACEHOLDER_PHRASE =
  /\b(?:insert|add|put|enter|paste|place|type|write) (?:your |the |a |an |some )?[\p{L} ]{2,30} here\b|\b(?:text|content|answer|joke|code|summary|name|details?|description|introduction|conclusion|body|explanation|analysis|result|data|image|list) (?:goes|comes|would go|to go|belongs) here\b|\byour (?:text|content|answer|name|message|company|code|logic) here\b|\b(?:this is (?:a |just a )?|sample |dummy )(?:placeholder|text|filler)\b|\bplaceholder\b|\bto be (?:determined|added|completed|filled(?: in)?|inserted|written|announced|decided|provided)\b|\b(?:tbd|tbc|tba)\b|\bcoming soon\b|\bfill in (?:the|your|this)\b|\(insert [^)\n]{2,60}\)|%[A-Z_]{3,30}%|\b(?:foo bar baz|blah blah|asdf|xxx+|etc\. etc\.)\b/iu

const STAGE =
  /^(?:laughs?|laughter|applause|pause|beat|sighs?|sic|verse ?\d?|chorus|bridge|outro|intro|music|audience .{0,30}|drum ?roll|rimshot|mic drop|crowd .{0,30}|source|citation.{0,20}|note|edit|link|image|lacht|pausa|rires?|whispers?|dramatic .{0,30}|walks? .{0,30}|exit.{0,30}|enter.{0,30}|gasps?|smiles?|shrugs?|looks? .{0,30}|points? .{0,30})$/i

function findSlots(prose: string): string[] {
  const slots: string[] = []
  for (const match of prose.matchAll(
    /\[([^[\]\n]{2,60})\](?![([])|\{\{([^{}\n]{1,60})\}\}|<([a-z][a-z _-]{2,30})>|(?<![$\w`{])\{([a-z][a-z _]{2,30})\}|_{4,}/giu,
  )) {
    const inner = match[1] ?? match[2] ?? match[3] ?? match[4]
    if (slots.length >= 50) break
    if (match[2] !== undefined || inner === undefined) slots.push(match[0])
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
  const words = wordsOf(inner.replaceAll('_', ' '))
  if (words.length === 0 || words.length > 10 || STAGE.test(inner)) return false
  const hasSlotWord = words.some((word) => SLOT_WORDS.test(word))
  return isBracket ? hasSlotWord || (words.length >= 2 && /^[\p{L}\s'’/-]+$/u.test(inner)) : hasSlotWord
}

function findCodePlaceholder(code: string, task: ReadTask): string | undefined {
  const lines = code
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  const isComment = (line: string) => /^(?:#|\/\/|--|\/\*|\*|<!--|;|%)/.test(line)
  const isStub = (line: string) =>
    /\b(?:todo|fixme|your code (?:goes )?here|code (?:goes )?here|logic (?:goes )?here|placeholder|to be implemented|fill in|implement(?:ation)? (?:this|here|me|goes here|logic)|not implemented|rest of (?:the|your) code|add (?:your )?(?:code|logic) here)\b/i.test(
      line,
    )
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

/** Languages with enough words in the table to miss them in a short text. */
const WELL_KNOWN = new Set([
  'en',
  'de',
  'fr',
  'es',
  'it',
  'pt',
  'nl',
  'zh',
  'ja',
  'ko',
  'ru',
  'el',
  'ar',
  'he',
  'hi',
  'th',
])

/** The answer is in the language of the task, or in the one that the task names. */
export function checkLanguage(task: ReadTask, output: ReadText): Finding {
  const { prose } = splitFences(output.raw)
  const language = detectLanguage(wordsOf(prose.replace(/`[^`\n]{0,200}`/g, ' ')))
  const target = task.targetLanguage
  const isForeign = findForeignWords(task, prose)
  if (isForeign) return failed('Its words are not those of the language of the task.')
  if (target) {
    if (!language || target === 'la' || target === 'uk') return notApplicable
    if (sameLanguage(language.language, target)) return passed
    // "Comment dit-on … en italien ?" may be answered in French, with the words quoted.
    const isAsking = /\b(?:dit-on|heißt|sagt man|se dice|si dice|how do you say|hoe zeg je)\b/i.test(task.request)
    const isOwn = task.language !== undefined && sameLanguage(language.language, task.language.language)
    if (isAsking || (isOwn && quotedPassages(output.raw, 200).length > 0)) return notApplicable
    // In a translation every word counts; other texts may quote words of another language.
    const isTranslation =
      task.is.translation ||
      quotedPassages(task.request, 600).length > 0 ||
      quotedPassages(task.full.raw, 600).length > 0
    const isOther = isTranslation
      ? (language.isSure && (WELL_KNOWN.has(target) || language.score >= 4)) ||
        (WELL_KNOWN.has(target) && language.score >= 1 && language.score > 2 * language.scoreOf(target))
      : language.isSure &&
        (output.words.length >= 8 ||
          /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]{6}/u.test(prose))
    return isOther
      ? failed(`It is in another language (${language.language}) than the one asked for (${target}).`)
      : notApplicable
  }
  if (!language || !task.language || task.mentionsLanguage) return notApplicable
  if (mayTranslate(task, output)) return notApplicable
  const own = task.language
  if (sameLanguage(language.language, own.language)) return language.isSure ? passed : notApplicable
  // One of the two must be sure, and the other must have nothing of the first.
  const isOther = language.isSure
    ? own.isSure ||
      (own.score >= 1 &&
        (task.full.words.filter((word) => !/^\d/.test(word)).length >= 6 || isPlainEnglish(task)) &&
        own.scoreOf(language.language) <= 0.3 * own.score)
    : own.isSure && output.words.length >= 4 && language.score >= 1.2 && language.scoreOf(own.language) === 0
  if (!isOther) return notApplicable
  // The request may be short and the text that it is about in another language: both are allowed.
  const materialLanguage = task.material ? detectLanguage(wordsOf(task.material)) : undefined
  if (materialLanguage && sameLanguage(language.language, materialLanguage.language)) return passed
  return failed(`It is in another language (${language.language}) than the task (${own.language}).`)
}

/** A short question of which every word is English, such as "What causes tides?". */
function isPlainEnglish({ language, full }: ReadTask): boolean {
  const { share, count } = englishShare(full.raw)
  return language?.language === 'en' && count >= 2 && share === 1
}

/** The share of words that are among the commonest of English; those with a capital may be names. */
function englishShare(text: string): { share: number; count: number } {
  const words = (text.match(/(?<![\p{L}\p{N}.@/_-])\p{Ll}[\p{L}'’]{1,30}/gu) ?? []).slice(0, 200)
  const englishWords = words.filter(
    (word) => rankOf(word.replaceAll('’', "'").replace(/'.*$/, '')) !== undefined,
  ).length
  return { share: englishWords / Math.max(1, words.length), count: words.length }
}

/** A task in English and an answer of which few words are English, or the other way round. */
function findForeignWords(task: ReadTask, prose: string): boolean {
  if (
    task.mentionsLanguage ||
    task.targetLanguage ||
    task.is.translation ||
    task.isVague ||
    task.code ||
    mayTranslate(task)
  )
    return false
  if (/[{};][ \t]{0,8}$|=>|\bSELECT\b|^[ \t]{0,20}(?:def|const|import)\b/m.test(prose)) return false
  const requestShare = englishShare(task.request)
  const materialShare = englishShare(`${task.material} ${task.context.join(' ')}`)
  const answer = englishShare(prose.replace(/`[^`\n]{0,200}`/g, ' '))
  if (answer.count < 6) return false
  const isEnglishTask =
    requestShare.count >= 4 && requestShare.share >= 0.75 && (materialShare.count < 4 || materialShare.share >= 0.75)
  if (isEnglishTask && answer.share < 0.4 && countEnglish(prose) === 0) return true
  const isForeignTask =
    requestShare.count >= 3 &&
    requestShare.share < 0.45 &&
    (materialShare.count < 4 || materialShare.share < 0.5) &&
    countEnglish(task.request) === 0 &&
    task.language !== undefined &&
    task.language.language !== 'en'
  return isForeignTask && answer.share > 0.92 && countEnglish(prose) >= 2
}

const countEnglish = (text: string) =>
  text.match(/\b(?:the|is|of|and|to|that|it|you|for|are|with|any|through|in|on|from|your|my|what|how|pls|please)\b/gi)
    ?.length ?? 0

/** A short task in a language whose word for "translate" is not known here, with a text of about the length of the answer. */
const mayTranslate = (task: ReadTask, output?: ReadText) => {
  if (!task.language || ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl'].includes(task.language.language)) return false
  const quotes = quotedPassages(task.full.raw, 600)
  const length = quotes.reduce((sum, quote) => sum + quote.text.length, 0)
  return length > 0 && (output === undefined || output.raw.length <= 2.5 * length + 30)
}

const OPEN_ENDED = new Set(
  'and or but the a an of to in for with is are was were be which who because if as at by from on into than my your our their its und oder aber der die das ein eine einen dem den mit für von zu ist sind dass weil wenn et ou mais le la les un une de des du pour avec est sont que qui y o pero el los las una del para con es son que e ma il lo gli di per con è sono che mas os as um uma do da para com é são en of maar de het een van voor met is zijn dat och eller att en ett som'.split(
    ' ',
  ),
)

/** An answer that stops in the middle: an open fence, bracket or quotation, or a last sentence without an end. */
export function checkComplete(output: ReadText, finishedEarly: boolean): Finding {
  if (finishedEarly) return failed('The model stopped at its limit of length.')
  const text = output.raw.trimEnd()
  if (splitFences(text).open) return failed('Its code block does not end.')
  if (/^[[{]/.test(text) && /["\w]\s*:|^\[/.test(text) && !isBalanced(text)) return failed('Its JSON does not end.')
  const lastLine = text.slice(text.lastIndexOf('\n') + 1).trim()
  if (isTableCut(output)) return failed('Its table stops in the middle of a row.')
  if (isQuoteOpen(output.lines, lastLine)) return failed('Its last quotation does not end.')
  if (
    /^(?:create|select|insert|with|def|function|class|const|import)\b/i.test(text) &&
    !text.includes('```') &&
    !isEven(text)
  )
    return failed('Its code does not end.')
  if (lastLine === '' || lastLine.startsWith('|') || /^[`#>]/.test(lastLine) || lastLine.startsWith('```'))
    return passed
  const body = trimMarks(lastLine)
  if (/[\p{L}\p{N}],$/u.test(body) && body.split(' ').length > 2) return failed('It ends with a comma.')
  if (/[([{–—:-]$/.test(body) && output.words.length > 5)
    return body.endsWith(':') && output.lines.length < 2 && output.words.length < 8
      ? passed
      : failed('It stops before its end.')
  if (/[.!?。！？…؟।"”“»«’')\]}%°$€£>]$/u.test(body) || /\p{Extended_Pictographic}\ufe0f?$/u.test(body)) return passed
  if (/^(?:https?:|www\.|[#@]\p{L})|\w@\w/u.test(body.slice(body.lastIndexOf(' ') + 1).slice(0, 200))) return passed
  const sentence = sentencesOf(body).at(-1) ?? body
  const words = wordsOf(sentence)
  const last = words.at(-1) ?? ''
  const isVerse = output.lines.length >= 3 && !output.lines.slice(0, -1).some((line) => /[.!?。！？]$/u.test(line))
  const least = output.lines.length > 1 || sentence !== body ? 2 : 4
  if (
    !isVerse &&
    words.length >= least &&
    OPEN_ENDED.has(last) &&
    /^[\p{Ll}'’]+$/u.test(sentence.split(/\s+/).at(-1) ?? '')
  )
    return failed('Its last sentence has no end.')
  return endsUnlikeTheRest(output, sentence, words) ? failed('Its last sentence has no end.') : passed
}

/** A long last sentence without a full stop, where the sentences or the items before it have one. */
function endsUnlikeTheRest(output: ReadText, sentence: string, words: readonly string[]): boolean {
  const isItem = (line: string) => /^(?:[-*•–]|\d{1,3}[.)])\s/.test(line)
  const endsSentence = (line: string) => /[.!?。！？…:;,"”»)*|]$/u.test(trimMarks(line))
  const before = output.lines.slice(0, -1)
  const lastLine = output.lines.at(-1) ?? ''
  if (isItem(lastLine)) {
    const items = before.filter(isItem)
    return items.length >= 1 && items.every((line) => /[.!?]$/.test(line)) && words.length >= 4
  }
  const sentences = sentencesOf(output.raw.trimEnd())
  const ended = sentences.filter((text) => /[.!?。！？]["”’)]*$/u.test(text)).length
  if (lastLine === sentence && before.length > 0) {
    // Verses and signatures have lines of their own.
    return words.length >= 9 && ended >= 2 && before.filter(endsSentence).length * 3 >= before.length * 2
  }
  // Without spaces a sentence is a few long words.
  const isLong = words.length >= 6 || (/[\p{Script=Han}\p{Script=Hiragana}]/u.test(sentence) && sentence.length >= 8)
  return isLong && ended >= 1
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
