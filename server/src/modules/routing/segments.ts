/**
 * Splits a task into sentences, lines, code and rows of data, and finds those that may hold the request. It goes through
 * the text once and looks at UTF-16 units only, so its cost is linear and the same on every machine.
 */
export type SegmentKind = 'prose' | 'code' | 'data'

export type Segment = {
  start: number
  end: number
  kind: SegmentKind
  /** The segment stands inside double quotes, or its line starts with `>`. */
  isQuoted: boolean
  /** The text before it ends in a colon. */
  followsColon: boolean
}

const MAX_SENTENCE_CHARACTERS = 260
const MAX_BLOCK_CHARACTERS = 400
/** A part before a colon must have this many characters to be a segment of its own. */
const MIN_BEFORE_COLON = 8

const SPACE = 32
const EXCLAMATION = 33
const QUOTE = 34
const COLON = 58
const QUESTION = 63
const FULL_STOP = 46
const BACKTICK = 96
const DANDA = 0x964
const ARABIC_QUESTION = 0x61f
const IDEOGRAPHIC_STOP = 0x3002
const WIDE_EXCLAMATION = 0xff01
const WIDE_QUESTION = 0xff1f
const WIDE_COLON = 0xff1a

export function splitSegments(text: string): Segment[] {
  const segments: Segment[] = []
  let isInFence = false
  let isQuoted = false
  let followsColon = false
  let lineStart = 0

  let nextSign = -1
  /** The next sign from here on. It is kept, so that many lines before one sign do not search for it again and again. */
  const findSign = (from: number): number => {
    if (nextSign >= from) return nextSign
    SIGNS.lastIndex = from
    nextSign = SIGNS.exec(text)?.index ?? Number.POSITIVE_INFINITY
    return nextSign
  }

  const addSentence = (from: number, to: number, quoted: boolean): void => {
    let start = from
    let end = to
    while (start < end && text.charCodeAt(start) <= SPACE) start++
    while (end > start && text.charCodeAt(end - 1) <= SPACE) end--
    if (end === start) return
    segments.push({ start, end, kind: 'prose', isQuoted: quoted, followsColon })
    const last = text.charCodeAt(end - 1)
    followsColon = last === COLON || last === WIDE_COLON
  }

  const addBlockLine = (start: number, end: number, kind: SegmentKind): void => {
    const last = segments.at(-1)
    if (last && last.kind === kind) {
      if (last.end - last.start < MAX_BLOCK_CHARACTERS) last.end = Math.min(end, last.start + MAX_BLOCK_CHARACTERS)
      return
    }
    segments.push({ start, end: Math.min(end, start + MAX_BLOCK_CHARACTERS), kind, isQuoted, followsColon })
    followsColon = false
  }

  const addProseLine = (start: number, end: number): void => {
    const isQuotedLine = text.charCodeAt(start) === 62
    let from = start
    let startsQuoted = isQuoted || isQuotedLine
    const cut = (at: number) => {
      addSentence(from, at, startsQuoted)
      from = at
      startsQuoted = isQuoted || isQuotedLine
    }
    // A pattern finds the few signs that matter faster than a loop over all characters.
    let next = start
    for (;;) {
      const i = Math.min(end, findSign(next))
      next = i + 1
      for (let at = findLongCut(text, from, i); at < i; at = findLongCut(text, from, i)) cut(at + 1)
      if (i === end) break
      const code = text.charCodeAt(i)
      if (code === QUOTE || code === 0x201c || code === 0x201d || code === 0xab || code === 0xbb) {
        isQuoted = !isQuoted
        if (i === from) startsQuoted = isQuoted || isQuotedLine
      }
      if (endsSegment(text, i, code, end, i - from)) cut(i + 1)
    }
    addSentence(from, end, startsQuoted)
  }

  while (lineStart < text.length) {
    let lineEnd = text.indexOf('\n', lineStart)
    if (lineEnd < 0) lineEnd = text.length
    let start = lineStart
    while (start < lineEnd && text.charCodeAt(start) <= SPACE) start++
    if (start < lineEnd) {
      if (text.charCodeAt(start) === BACKTICK && text.startsWith('```', start)) {
        isInFence = !isInFence
        if (isInFence) addBlockLine(start + 3, lineEnd, 'code')
      } else {
        const kind = isInFence ? 'code' : classifyLine(text, start, lineEnd)
        if (kind === 'prose') addProseLine(start, lineEnd)
        else addBlockLine(start, lineEnd, kind)
      }
    } else if (!isInFence) {
      isQuoted = false
    }
    lineStart = lineEnd + 1
  }
  return segments.filter(({ start, end }) => end > start)
}

/** Signs that may end a sentence, and quotation marks. */
const SIGNS = /[!".:?«»“”؟।。！：？]/g

/** Where a sentence that is too long is cut: at the first space behind the limit, or at twice the limit. */
function findLongCut(text: string, from: number, end: number): number {
  const limit = Math.min(end, from + 2 * MAX_SENTENCE_CHARACTERS)
  for (let i = from + MAX_SENTENCE_CHARACTERS; i < limit; i++) if (text.charCodeAt(i) === SPACE) return i
  return limit
}

function endsSegment(text: string, i: number, code: number, end: number, length: number): boolean {
  if (length >= 2 * MAX_SENTENCE_CHARACTERS) return true
  if (code === COLON) return length >= MIN_BEFORE_COLON && text.charCodeAt(i + 1) <= SPACE
  if (code === FULL_STOP || code === EXCLAMATION || code === QUESTION || code === ARABIC_QUESTION)
    return i + 1 >= end || text.charCodeAt(i + 1) <= SPACE
  return (
    code === IDEOGRAPHIC_STOP ||
    code === WIDE_EXCLAMATION ||
    code === WIDE_QUESTION ||
    code === WIDE_COLON ||
    code === DANDA
  )
}

/** { } ( ) ; = < > \ : characters that are more frequent in code than in prose. */
export const isCodeMark = (code: number) =>
  code === 123 ||
  code === 125 ||
  code === 40 ||
  code === 41 ||
  code === 59 ||
  code === 61 ||
  code === 60 ||
  code === 62 ||
  code === 92

function classifyLine(text: string, start: number, end: number): SegmentKind {
  let codeMarks = 0
  let digits = 0
  let separators = 0
  let spaces = 0
  const last = Math.min(end, start + MAX_SENTENCE_CHARACTERS)
  for (let i = start; i < last; i++) {
    const code = text.charCodeAt(i)
    if (code >= 48 && code <= 57) digits++
    else if (code === SPACE) spaces++
    else if (code === 44 || code === 9 || code === 124 || code === 59) separators++
    if (isCodeMark(code)) codeMarks++
  }
  const length = last - start
  if (codeMarks >= 2 && codeMarks * 14 >= length) return 'code'
  if (digits * 4 >= length && digits >= 3 && length >= 6) return 'data'
  if (separators >= 2 && spaces <= separators * 2 && digits >= 2) return 'data'
  if (separators >= 2 && spaces < separators) return 'data'
  return 'prose'
}

/** Words that stand in requests, by how strongly they say so. Only used to skip parts of a long text; the model weighs the rest. */
const STRONG_CUES =
  'please write draft compose summarize summarise rewrite proofread edit explain compare research investigate find calculate compute analyze analyse forecast fix debug refactor implement code review translate convert plan decide recommend prioritize prioritise reply respond answer tell give make create roast joke help need want list suggest generate build choose estimate task request goal objective instruction bitte schreib schreibe erkläre erstelle berechne vergleiche fasse antworte formuliere übersetze analysiere écris rédige explique calcule compare résume réponds traduis analyse corrige escribe redacta explica calcula compara resume responde traduce analiza corrige necesito quiero escreva redija explique calcule compare resuma responda traduza analise corrija preciso quero scrivi redigi spiega calcola confronta riassumi rispondi traduci analizza correggi vorrei schrijf leg bereken vergelijk vat beantwoord vertaal graag napisz wyjaśnij oblicz porównaj streść odpowiedz przetłumacz proszę напиши напишите объясни объясните посчитай сравни сравните ответь ответьте переведи исправь составь пожалуйста напиши поясни порівняй відповідай lütfen yaz yazın açıkla hesapla karşılaştır özetle çevir düzelt اكتب اشرح احسب قارن لخص ترجم أجب صحح من فضلك بنویس توضیح लिखो लिखिए लिखें समझाइए बताइए बताओ कृपया हिसाब तुलना viết giải thích tính so sánh tóm tắt dịch hãy tolong tulis buatkan jelaskan hitung bandingkan ringkas terjemahkan skriv förklara beräkna jämför sammanfatta svara översätt napiš vysvětli spočítej porovnej prosím scrie explică calculează compară rezumă 써줘 작성해 설명해 계산해 비교해 요약해 번역해 주세요 해줘'
const WEAK_CUES =
  'can could would should what why how which who when you me us kannst können was warum wie welche peux pouvez pourquoi comment quel puedes podrías por qué cómo cuál pode poderia como qual puoi potresti perché come quale kun waarom hoe możesz dlaczego jak możete можешь почему как какой что neden nasıl musun هل كيف لماذا ما क्या क्यों कैसे bisa mengapa bagaimana kan du varför hur'
/** Two characters each, for scripts without spaces. */
const BIGRAM_CUES =
  '请帮 帮我 请写 写一 请给 给我 解释 计算 比较 总结 翻译 分析 修复 回复 推荐 くだ ださ 下さ 教え 書い 作っ 計算 比較 要約 説明 翻訳 直し 返信 เข ช่ อธ แป สร'

const CUE_SLOTS = 8192
const cues = new Uint8Array(CUE_SLOTS)
for (const [words, weight] of [
  [WEAK_CUES, 1],
  [STRONG_CUES, 3],
  [BIGRAM_CUES, 3],
] as const) {
  for (const word of words.split(' ')) cues[hashUnits(word.toLowerCase()) & (CUE_SLOTS - 1)] = weight
}

function hashUnits(word: string): number {
  let hash = 0
  for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 0x01000193)
  return hash ^ (hash >>> 13)
}

/** A request's verb usually stands near its beginning; no more of a segment is read for the score. */
const SCORED_CHARACTERS = 60
const MAX_REQUEST_SCORE = 100

/** How much a segment looks like a request: words that ask, a question mark, the end of the text. */
function scoreRequest(text: string, segment: Segment): number {
  if (segment.kind !== 'prose') return 0
  let score = segment.isQuoted ? 0 : 2
  let hash = 0
  let previous = 0
  let words = 0
  const end = Math.min(segment.end, segment.start + SCORED_CHARACTERS)
  for (let i = segment.start; i <= end; i++) {
    let code = i < end ? text.charCodeAt(i) : SPACE
    if (code >= 65 && code <= 90) code |= 32
    if ((code >= 97 && code <= 122) || code > 0xbf) {
      hash = Math.imul(hash ^ code, 0x01000193)
      if (code >= 0x0e00 && previous >= 0x0e00) {
        const pair = Math.imul(Math.imul(previous, 0x01000193) ^ code, 0x01000193)
        score += cues[(pair ^ (pair >>> 13)) & (CUE_SLOTS - 1)]!
      }
    } else if (hash !== 0) {
      const weight = cues[(hash ^ (hash >>> 13)) & (CUE_SLOTS - 1)]!
      // The verb of a request usually stands at its beginning.
      score += words < 3 ? weight * 2 : weight
      words++
      hash = 0
    }
    previous = code
  }
  const last = text.charCodeAt(segment.end - 1)
  if (last === QUESTION || last === WIDE_QUESTION || last === ARABIC_QUESTION) score += 4
  return score
}

/** The segments most likely to hold the request, in their order: the first ones, the last ones, and those that ask. */
export function selectSegments(
  text: string,
  segments: readonly Segment[],
  maxSegments: number,
  maxCharacters: number,
): Segment[] {
  if (segments.length <= maxSegments && text.length <= maxCharacters) return [...segments]
  const scores = new Uint8Array(segments.length)
  const counts = new Uint32Array(MAX_REQUEST_SCORE + 1)
  segments.forEach((segment, i) => {
    const fromEnd = segments.length - 1 - i
    const position = i === 0 || fromEnd === 0 ? MAX_REQUEST_SCORE : i < 3 || fromEnd < 3 ? 6 : 0
    const score = Math.min(MAX_REQUEST_SCORE, scoreRequest(text, segment) + position)
    scores[i] = score
    counts[score]!++
  })
  // The lowest score of a selected segment, found by counting: sorting would take longer than reading.
  let lowest = MAX_REQUEST_SCORE
  let above = counts[lowest]!
  while (lowest > 0 && above < maxSegments) above += counts[--lowest]!
  let places = maxSegments - (above - counts[lowest]!)
  const selected = segments.filter((_, i) => scores[i]! > lowest || (scores[i] === lowest && places-- > 0))
  // The last segment has its place whatever stands between.
  const last = selected.at(-1)
  let characters = last ? last.end - last.start : 0
  return selected.filter((segment) => {
    if (segment === last) return true
    characters += segment.end - segment.start
    return characters <= maxCharacters
  })
}
