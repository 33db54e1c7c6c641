import { MAX_STEPS_PER_TASK, StepBudgetExceeded, withStepBudget } from '../../../platform/step-budget.ts'
import { looksLikeCommand, readBrief } from './brief.ts'
import { splitSentences } from './text.ts'

/** Work that no rule can do. */
export type OutOfReach = 'translation' | 'image'

/** A request stands at the beginning of a task or at its end; what is between them is not read, since everybody waits meanwhile. */
const MAX_PART_CHARACTERS = 2_000
const MAX_SENTENCES = 6
const MAX_WORDS = 40
const MAX_SENTENCE_CHARACTERS = 400

/**
 * Whether a task plainly asks for a translation or an image: its request, not its material, says so as a command. In doubt
 * the answer is no, because a task that is attempted and not done is not charged, and one that is refused is not attempted.
 */
export function findOutOfReach(task: string): OutOfReach | undefined {
  try {
    return withStepBudget(MAX_STEPS_PER_TASK, () => readRequest(shorten(task)))
  } catch (error) {
    if (error instanceof StepBudgetExceeded) return undefined
    throw error
  }
}

const shorten = (task: string) =>
  task.length <= 2 * MAX_PART_CHARACTERS
    ? task
    : `${task.slice(0, MAX_PART_CHARACTERS)}\n${task.slice(-MAX_PART_CHARACTERS)}`

function readRequest(task: string): OutOfReach | undefined {
  const brief = readBrief(task)
  const sentences = splitSentences((brief.instruction || brief.task).slice(0, MAX_PART_CHARACTERS), MAX_SENTENCES)
  const hasMaterialAfter = brief.material !== ''
  for (const [i, { text }] of sentences.entries()) {
    const sentence = text.slice(0, MAX_SENTENCE_CHARACTERS)
    const words = readWords(sentence)
    const isLast = i === sentences.length - 1
    if (asksForTranslation(words, sentence, isLast && hasMaterialAfter)) return 'translation'
    if (asksForImage(words, sentence)) return 'image'
    // Whatever follows a request for something else belongs to it.
    if (looksLikeCommand(sentence)) return undefined
  }
  return undefined
}

/** A word without marks on its letters, and whether a sign that ends a phrase follows it. */
type Word = { text: string; mark: string }

function readWords(sentence: string): Word[] {
  const words: Word[] = []
  for (const match of withoutMarks(sentence).matchAll(/([\p{L}\p{N}]+)([^\p{L}\p{N}]{0,8})/gu)) {
    words.push({ text: match[1]!, mark: match[2]!.trim() })
    if (words.length >= MAX_WORDS) break
  }
  return words
}

const withoutMarks = (text: string) => text.toLowerCase().normalize('NFD').replace(/\p{M}/gu, '')

const wordSet = (words: string) => new Set(withoutMarks(words).split(' '))

const POLITE = wordSet(
  'please kindly can could would will you hey hi hello now then ok okay so just bitte s il te vous plait por favor per favore ' +
    'peux tu pouvez pourrais pourriez merci de veuillez kannst konntest konnen konnten sie du puedes podrias puede podria ' +
    'pode poderia voce puoi potresti kun je kunt u prosze пожалуйста',
)

const isAny = (words: readonly Word[], ...expected: string[]) =>
  expected.every((text, i) => text.split('|').includes(words[i]?.text ?? ''))

/** The words of a request after "please", "can you", "I need you to" and their like. */
function dropPoliteWords(words: readonly Word[]): readonly Word[] {
  let start = 0
  while (start < words.length && POLITE.has(words[start]!.text)) start += 1
  const rest = words.slice(start)
  if (isAny(rest, 'i|we', 'need|want', 'you', 'to')) return rest.slice(4)
  if (isAny(rest, 'i', 'd|would', 'like', 'you', 'to')) return rest.slice(5)
  if (isAny(rest, 'help', 'me|us', 'to')) return rest.slice(3)
  if (isAny(rest, 'help', 'me|us')) return rest.slice(2)
  return rest
}

const LANGUAGES = wordSet(
  'english french german spanish italian portuguese dutch polish russian ukrainian czech slovak swedish norwegian danish ' +
    'finnish icelandic greek turkish arabic hebrew hindi bengali urdu punjabi tamil telugu persian farsi chinese mandarin ' +
    'cantonese japanese korean vietnamese thai indonesian malay tagalog filipino swahili latin hungarian romanian bulgarian ' +
    'croatian serbian slovenian estonian latvian lithuanian catalan basque galician irish welsh esperanto afrikaans',
)

/** What may stand before the name of a language without changing that it is one. */
const LANGUAGE_KINDS = wordSet(
  'brazilian european simplified traditional mandarin canadian american british swiss austrian mexican formal informal ' +
    'modern standard both natural idiomatic fluent correct good proper the',
)

/** What may follow it; "Latin American" and "German market" are no languages. */
const AFTER_LANGUAGE = wordSet(
  'and or for with without please while but using in as from so that keeping keep then text language to word by at if when',
)

/** The language that a preposition at `start` leads to. */
function languageAt(words: readonly Word[], start: number): string | undefined {
  let i = start
  while (i < start + 3 && LANGUAGE_KINDS.has(words[i]?.text ?? '')) i += 1
  const word = words[i]
  if (!word || !LANGUAGES.has(word.text)) return undefined
  const next = words[i + 1]
  return !next || word.mark !== '' || AFTER_LANGUAGE.has(next.text) ? word.text : undefined
}

function findLanguage(words: readonly Word[], prepositions: string): string | undefined {
  for (let i = 0; i < words.length; i++) {
    if (!prepositions.split('|').includes(words[i]!.text)) continue
    const language = languageAt(words, i + 1)
    if (language) return language
  }
  return undefined
}

const DEMONSTRATIVES = wordSet('this that it these those following below above')
const TEXT_NOUNS = wordSet(
  'text texts sentence sentences paragraph paragraphs email e mail letter message document article phrase phrases word words ' +
    'passage poem paper page note notes',
)

/** "translate this: …", "translate the following text" with one: without a text there is nothing to translate. */
function namesPastedText(words: readonly Word[], hasMaterialAfter: boolean): boolean {
  for (const [i, { text, mark }] of words.entries()) {
    if (!DEMONSTRATIVES.has(text) && !TEXT_NOUNS.has(text) && !['the', 'my', 'for', 'me'].includes(text)) return false
    if (mark.includes(':') && i < words.length - 1) return true
  }
  return hasMaterialAfter
}

function asksForTranslation(words: readonly Word[], sentence: string, hasMaterialAfter: boolean): boolean {
  return (
    asksInEnglish(words, hasMaterialAfter) || asksInAnotherLanguage(words) || WITHOUT_SPACES_TRANSLATION.test(sentence)
  )
}

function asksInEnglish(allWords: readonly Word[], hasMaterialAfter: boolean): boolean {
  const words = dropPoliteWords(allWords)
  const [verb, ...rest] = words
  if (!verb) return false
  if (verb.text === 'translate') {
    if (findLanguage(rest, 'to|into|in|from')) return true
    if (/["“«'‘:]/.test(verb.mark)) return rest.length > 0
    const hasOtherTarget = rest.some(({ text }) => text === 'into' || text === 'to' || text === 'from')
    return !hasOtherTarget && namesPastedText(rest, hasMaterialAfter)
  }
  if (isAny(words, 'how', 'do|does|would|can|to', 'you|i|we|one|say|write'))
    return words.some(({ text }) => text === 'say') && endsInLanguage(words)
  if (isAny(words, 'rewrite|render|put|convert|turn', 'this|it|that|these|the')) {
    const language = findLanguage(rest, 'to|into|in')
    return language !== undefined && language !== 'english'
  }
  return asksForTheTranslation(words)
}

function endsInLanguage(words: readonly Word[]): boolean {
  const last = words.findLastIndex(({ text }) => text === 'in')
  return last >= 0 && languageAt(words, last + 1) !== undefined
}

/** "give me the French translation of …", "I need a translation of this letter into Polish". */
function asksForTheTranslation(words: readonly Word[]): boolean {
  const isRequest =
    isAny(words, 'give|provide|write|make|produce|prepare|get|do|send|show') || isAny(words, 'i|we', 'need|want')
  const at = words.findIndex(({ text }) => text === 'translation')
  if (!isRequest || at < 1 || at > 6) return false
  const next = words[at + 1]
  const follows = !next || words[at]!.mark !== '' || isAny([next], 'of|into|to|from|please|for')
  // The translation is what is asked for only when nothing but its article and language stand before it.
  const before = words.slice(isAny(words, 'i|we') ? 2 : 1, at).map(({ text }) => text)
  const isObject = before.every((text) => ['me', 'us', 'a', 'an', 'the', 'good'].includes(text) || LANGUAGES.has(text))
  if (!follows || !isObject) return false
  const namesLanguage = before.some((text) => LANGUAGES.has(text)) || findLanguage(words.slice(at), 'to|into|from')
  return Boolean(namesLanguage) || isAny(words.slice(at + 1), 'of', 'this|that|it|these')
}

/** Commands to translate, without marks on their letters. */
const TRANSLATE_COMMANDS = wordSet(
  'traduis traduisez traduire ubersetze ubersetz ubersetzen traduce traduzca traducir traduceme traduzcan traduza traduz traduzir ' +
    'traduci traduca tradurre traducete traducimi vertaal vertalen przetłumacz przetlumacz przetłumaczyc przetlumaczyc ' +
    'переведи переведите перевести переклади перекладіть prelozte preloz oversatt oversæt oversett kaanna terjemahkan tradu ' +
    'traduceti forditsd forditsa μεταφρασε μεταφραστε ترجم ceviri cevir cevirin cevirir',
)

/** Beginnings of names of languages in other languages, without marks. */
const LANGUAGE_STEMS = withoutMarks(
  'anglais francais allemand espagnol italien portugais neerlandais polonais russe chinois japonais coreen arabe turc ' +
    'englisch franzosisch deutsch spanisch italienisch portugiesisch niederlandisch polnisch russisch chinesisch japanisch ' +
    'koreanisch arabisch turkisch ukrainisch ingles frances aleman espanol castellano italiano portugues ruso chino japones ' +
    'coreano espanhol russo chines inglese francese tedesco spagnolo portoghese cinese giapponese engels frans duits spaans ' +
    'italiaans nederlands angielsk francusk niemieck hiszpansk wlosk włosk polsk английск французск немецк испанск итальянск ' +
    'русск китайск японск украинск англійськ українськ anglictin francouzstin nemcin cestin engelska franska tyska svenska ' +
    'engelsk fransk tysk englanni ranska inggris prancis jerman ingilizce fransizca almanca ispanyolca turkce ' +
    'الانجليزية الإنجليزية الفرنسية العربية الالمانية الألمانية الاسبانية الإسبانية αγγλικα γαλλικα γερμανικα',
).split(' ')

const FOREIGN_TARGETS = wordSet(
  'en in ins auf al a ao para na naar do till til til на إلى الى sang ke στα la el o het das',
)

function asksInAnotherLanguage(allWords: readonly Word[]): boolean {
  const words = dropPoliteWords(allWords)
  const first = words[0]
  // German, Dutch and Turkish put the verb at the end of a question or a request.
  const last = words.at(-1)
  const commandAtEnd = allWords.length > words.length && last && TRANSLATE_COMMANDS.has(last.text)
  const turkish = words.findIndex(({ text }) => text === 'cevir' || text === 'cevirin')
  if (!first || !(TRANSLATE_COMMANDS.has(first.text) || commandAtEnd || turkish > 0)) return false
  const target = words.findIndex(({ text }) => LANGUAGE_STEMS.some((stem) => text.startsWith(stem)))
  if (target > 0) {
    const leadsThere = [words[target - 1], words[target - 2]].some((word) => word && FOREIGN_TARGETS.has(word.text))
    return leadsThere || turkish > target || /(?:ksi|ye|ya)$/.test(words[target]!.text)
  }
  const rest = words.slice(1)
  const hasOtherTarget = rest.some(
    ({ text }) => FOREIGN_TARGETS.has(text) && !['la', 'el', 'o', 'das', 'a'].includes(text),
  )
  return !hasOtherTarget && (first.mark.includes(':') || /["“«]/.test(first.mark) || rest.length <= 3)
}

/** Chinese, Japanese, Korean: commands to translate, not the word "translation" in a name. */
const WITHOUT_SPACES_TRANSLATION =
  /翻[译譯](?:成|为|為|到)(?:英|法|德|日|韩|韓|中|俄|西班牙|葡萄牙|阿拉伯|意大利)|^(?:请|請)?(?:帮我|幫我)?翻[译譯](?:一下|这|這|以下|下面|[::])|(?:英|仏|独|日本|中国|韓国|フランス|ドイツ|スペイン|イタリア)語(?:に|へ)(?:翻)?訳し|翻訳して(?:ください|下さい|ほしい|くれ)|(?:영어|프랑스어|독일어|일본어|중국어|스페인어|한국어)로 ?번역|번역해 ?(?:줘|주세요|주십시오)/

const IMAGE_COMMANDS = wordSet(
  'draw paint sketch generate create make design render produce need want dessine dessinez genere generez cree creez fais ' +
    'faites zeichne zeichnen male malen erstelle erstellen erzeuge generiere entwirf gestalte dibuja dibujame genera generar ' +
    'crea crear haz hazme disena disename desenhe desenha gere gera crie cria faca disegna disegnami creami fai progetta ' +
    'teken maak genereer ontwerp creeer нарисуй нарисуйте сгенерируй сгенерируйте создай создайте сделай narysuj wygeneruj',
)

const IMAGE_NOUNS = wordSet(
  'image images picture pictures photo photos photograph logo logos illustration illustrations drawing painting icon dessin ' +
    'bild bilder foto fotos zeichnung logotyp imagen imagenes logotipo ilustracion dibujo imagem ilustracao desenho immagine ' +
    'illustrazione disegno afbeelding plaatje tekening illustratie картинку изображение логотип рисунок иллюстрацию obrazek ' +
    'obraz',
)

/** Words of metaphors and of software between the verb and the noun: "a clear picture", "a Docker image". */
const OTHER_IMAGES = wordSet(
  'docker container disk machine vm boot iso base clear big bigger full complete accurate vivid mental detailed overall better ' +
    'whole golden system firmware',
)

const AFTER_IMAGE = wordSet(
  'of for showing with depicting featuring that which in on please about where de d pour avec qui von fur mit del para con que ' +
    'do da com di per van voor met с для в z dla',
)

/** With one of these in the request, an image is made by code, or a text about one is asked for. */
const SOFTWARE = wordSet(
  'python javascript typescript css html svg canvas pil pillow matplotlib code script function api endpoint class component react ' +
    'tag schema prompt caption description brief ascii docker dockerfile kubernetes container registry metaphor words latex mermaid',
)

const DEPICTABLE = wordSet(
  'cat dog horse house dragon unicorn car robot flower sunset landscape cartoon bird elephant fish portrait castle spaceship',
)

function asksForImage(allWords: readonly Word[], sentence: string): boolean {
  if (WITHOUT_SPACES_IMAGE.test(sentence)) return true
  const polite = dropPoliteWords(allWords)
  const words = isAny(polite, 'i|we', 'need|want') ? polite.slice(1) : polite
  const verb = words[0]?.text ?? ''
  if (!IMAGE_COMMANDS.has(verb) || words.some(({ text }) => SOFTWARE.has(text))) return false
  if (verb === 'draw' && drawsThing(words)) return true
  const at = words.findIndex(({ text }, i) => i > 0 && IMAGE_NOUNS.has(text))
  if (at < 1 || at > 8 || words.slice(1, at).some(({ text, mark }) => OTHER_IMAGES.has(text) || /[.:;]/.test(mark)))
    return false
  const noun = words[at]!
  if (isMetaphor(verb, noun.text)) return false
  const next = words[at + 1]
  return !next || (noun.mark !== '' && noun.mark !== '-') || AFTER_IMAGE.has(next.text)
}

/** "a picture of what customers think" is wanted, and painted, in words. */
const isMetaphor = (verb: string, noun: string) =>
  (/^picture/.test(noun) && ['need', 'want', 'paint'].includes(verb)) ||
  (/^(?:illustration|painting)/.test(noun) && ['need', 'want', 'make', 'produce'].includes(verb))

/** "draw a cat", "draw me a small dragon". */
function drawsThing(words: readonly Word[]): boolean {
  const start = isAny(words.slice(1), 'me|us') ? 2 : 1
  if (!isAny(words.slice(start), 'a|an|the|my|two|three')) return false
  return words.slice(start + 1, start + 4).some(({ text }) => DEPICTABLE.has(text))
}

const WITHOUT_SPACES_IMAGE =
  /^(?:请|請)?(?:帮我|幫我|给我|給我)?(?:画|畫)(?:一|个|個|张|張|幅|只)|(?:生成|设计|設計|制作|製作)(?:一(?:张|張|个|個|幅))?[^。]{0,12}(?:图片|圖片|图像|圖像|标志|標誌|插画|插畫|logo)$|(?:画像|ロゴ|イラスト|絵)を(?:描い|生成し|作っ|作成し|デザインし)て|(?:이미지|로고|그림)[을를]? ?(?:그려|생성해|만들어) ?(?:줘|주세요)/
