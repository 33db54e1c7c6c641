/** Words that are frequent in one language and rare in the others of this table; spelled as they are in lower case. */
const FUNCTION_WORDS: Readonly<Record<string, string>> = {
  en: "monday tuesday wednesday thursday friday saturday sunday comes goes says means costs lies makes takes first second last two three four five dear hello thank thanks sorry good best new like other one day year days years time people don't can't it's i'm let's that's you're the and is are was were of to in that it for you with this have has not be from what which how why who when where your their they will can could would should do does did about there an on at by or if but than then our we my me his her she he its as been more please write tell give make into after before because while also only very just some any all no yes so out up over here these those them us am i per who's what's how's where's there's he's she's we're they're isn't aren't doesn't didn't won't wouldn't couldn't shouldn't i'll you'll we'll i've we've",
  de: 'montag dienstag mittwoch donnerstag freitag samstag sonntag kommt geht gibt macht heißt liegt beträgt wurde wurden sowie jedoch etwa gut erst dann diese dieser dieses jeder alle viele zwei drei jahr jahre tage tag leider danke hallo lautet beim vom weil damit kostet mal ihnen ihm ihn der die das und ist sind war ein eine einen einem einer nicht mit für von zu auf im den dem des ich sie wir ihr es auch als wie was warum wer wann wo aber oder wenn dass sich bei nach aus zum zur über unter vor durch haben hat wird werden kann können soll mein dein sein ihre unser bitte mir uns euch noch nur schon sehr mehr keine kein habe hast am an um bis gegen ohne schreibe nenne ins darf dürfen muss müssen musst man sollen sollte sollten würde würden könnte könnten wäre welche welcher welches doch ob seit zwischen wieder ihrem ihren ihrer meine meinen deine deinen unsere unseren nichts etwas jetzt immer',
  fr: "lundi mardi mercredi jeudi vendredi samedi dimanche vient va peut fait sont était deux trois bonjour merci après avant chez sous jour jours ans année voici cela ça contre pour commencez utilisez il y a puis depuis lorsque afin chaque matin goût jour le la les des un une et est sont dans pour pas que qui ne sur avec ce cette ces au aux du en vous nous je il elle ils elles mais ou où donc car plus par comme tout tous être avoir fait quel quelle quels pourquoi comment quand votre vos notre nos mon ma mes son sa ses leur c'est j'ai l'on d'un d'une qu'il n'est très bien aussi s'il moi",
  es: 'a usted ustedes lunes martes miércoles jueves viernes sábado domingo viene va puede hace eran dos tres gracias después antes bajo día año años aquí esto eso contra nadie nunca siempre porque así mejor tiene tienen el la los las un una unos unas y es son en de del que no se por para con como más pero su sus al lo le les este esta estos estas ese esa muy también porque cuando donde dónde qué cómo cuál quién por qué está están ser fue hay yo tú usted nosotros mi mis nuestro ya sin sobre entre hasta desde todo todos cada uno dame escribe hola buenos días nos te tus tu nuestra nuestros nuestras',
  it: "sui sugli sulla sulle sul sullo nello nelle dallo dai agli allo ai dello lunedì martedì mercoledì giovedì venerdì sabato domenica viene va può fa erano due tre dopo prima sotto giorno giorni anno anni ecco questo quello contro nessuno mai sempre così meglio hai hanno ha dalle dagli nei negli il lo la i gli le un uno una e è sono di del della dei delle degli in che non si per con come più ma suo sua al alla alle nel nella questo questa questi queste molto anche perché quando dove cosa chi essere ha hanno ho abbiamo mio mia nostro già senza su tra fra fino da dal dalla ogni scrivi l'ho c'è dell all buongiorno grazie ci cui",
  pt: 'segunda terça quarta quinta sexta sábado domingo vem vai pode faz eram dois três depois antes sob dia ano anos aqui contra ninguém nunca sempre assim melhor tem têm ele ela causadas pela pelo pelos principalmente o a os as um uma uns umas e é são de do da dos das em no na nos nas que não se por para com como mais mas seu sua ao à às este esta isso isto muito também porque quando onde qual quem ser foi há eu você nós meu minha nosso já sem sobre entre até desde todo todos cada pelo pela está estão uma ele ela escreva obrigado olá num numa nesse nesta deste desta lhe lhes nossa suas seus foram vocês',
  nl: 'maandag dinsdag woensdag donderdag vrijdag zaterdag zondag komt gaat kan maakt waren twee drie dank hallo na voor onder dag dagen jaar hier tegen niemand nooit altijd zo beter heeft goedemorgen waarmee de het een en is zijn van in op te dat die voor met niet aan er om ook als maar bij naar uit door over dan nog wel hoe wat waarom wie wanneer waar ik jij je u wij we zij hij heeft hebben wordt worden kan kunnen zal zou mijn uw ons onze deze dit geen meer veel schrijf graag moet moeten mag alsjeblieft jullie jouw hun zonder tussen omdat',
  sv: 'måndag tisdag onsdag torsdag fredag lördag söndag kommer går kan gör två tre tack hej efter före dag år här och är det att en ett i på som för med av den inte till om har var från vi jag du han hon de men eller när hur vad varför vem där kan ska skulle så mycket min din vår er mig sig detta dessa också efter under över skriv berätta förklara sammanfatta ge nämn vilken vilka vilket kort mening meningar skämt svara våra vårt ditt måste finns blir blev vara varit kanske bara många ingen inga alla hälsning vänliga',
  da: 'og er det at en et i på som for med af den ikke til om har var fra vi jeg du han hun de men eller når hvordan hvad hvorfor hvem hvor kan skal ville så meget min din vores mig sig dette disse også efter under over skriv fortæl forklar nævn hvilken hvilke sætning svar hilsen bliver blev være været kun mange alle ingen kære tak hjertelig tillykke dage fordi lidt mere end',
  no: 'og er det at en et i på som for med av den ikke til om har var fra vi jeg du han hun de men eller når hvordan hva hvorfor hvem hvor kan skal ville så mye min din vår meg seg dette disse også etter under over skriv fortell forklar nevn hvilken hvilke setning svar hilsen blir ble være vært bare mange alle ingen kjære takk hjertelig gratulerer dager fordi litt mer enn',
  fi: 'ja on ei se että hän mutta kun niin kuin myös olla oli ovat tai jos minä sinä me te he tämä nämä mikä miksi miten missä kuka mitä kanssa sekä voi vain jo ole kirjoita kerro selitä tiivistä anna mainitse kuinka paljon lyhyt lyhyesti lause lauseessa asiakkaalle meidän teidän olen olemme voit voitte koska sillä joka jotka kaikki kello hei kiitos kutsu',
  pl: 'poniedziałek wtorek środa czwartek piątek sobota niedziela dzień dobry dziękuję dwa trzy rok lata tutaj i w na jest nie się z do że to jak o po dla co ale czy od za przez jego jej są był była być tym tego ten ta te które który która dlaczego kiedy gdzie kto mi mnie moja mój proszę bardzo oraz już tylko można napisz opowiedz streść streścić podaj wymień wyjaśnij zrób odpowiedz odpisz ile jaki jaka jakie jakiej krótki krótko krótką krótkie zdanie zdaniu zdaniach dowcip żart jednym dwóch trzech nasz nasza nasze naszej naszego klient klienta klientowi pan pani może będzie więc gdy jeśli także również których ma mam mamy jestem ponieważ albo lub ze we jednak wszystkie każdy nam nas wam dzieci',
  cs: 'a je v na se že to s z do o jak pro ale by jsem jsou byl byla být který která které co proč kdy kde kdo mi mě můj tato tento nebo už také jen při od po za velmi prosím napište napiš řekni shrň vysvětli uveď vytvoř kolik jaký jaká jaké krátký krátce větě věty větu vtip jedné jednou dvou tří náš naše našeho zákazník zákazníkovi bude budou aby když ještě můžete dobrý den děkuji jsme jste mám máme není',
  ro: 'și este în nu de la cu pe că un o care pentru din se sunt a fost mai dar sau ce cum de ce când unde cine lui ei meu mea acest această foarte prin după fără scrie vă spune explică rezumă dă câte câți scurt scurtă propoziție frază client clientului bună mulțumim mulțumesc nostru noastră avem aveți va vor fi ora',
  hu: 'a az és egy nem hogy is van volt ez azt de meg mint csak már ha vagy miért hogyan mikor hol ki mi én te ő mi ti ők kell lehet nagyon írj kérem szerint között mondj magyarázd foglald össze sorolj mennyi melyik röviden rövid mondat mondatban ügyfélnek köszönöm szia kedves mert hanem lesz lenne vannak nincs minden azért ezért',
  tr: 've bir bu da de için ile ne çok daha mi mı olarak olan gibi var yok ama ya veya değil neden nasıl kim nerede ben sen biz siz onlar benim bana lütfen kadar sonra her şey en yaz anlat açıkla özetle söyle ver kaç hangi kısa cümle cümlede müşteri müşteriye bizim sizin merhaba teşekkürler bize size çünkü olacak oldu bütün tüm yarın cevap',
  id: 'dan yang di ke dari ini itu untuk dengan pada adalah tidak akan atau juga saya kamu anda kami kita mereka dia apa mengapa bagaimana kapan siapa bisa dapat lebih oleh karena sudah telah dalam sebagai tolong tulis ceritakan jelaskan ringkas sebutkan berapa singkat kalimat pelanggan kepada terima kasih satu dua buatlah',
  vi: 'và là của có không được cho một các với trong này đó để những người tôi bạn chúng ta như khi nào sao gì ở đã sẽ cũng từ',
}

const SCRIPTS: readonly (readonly [string, RegExp])[] = [
  ['ja', /[\p{Script=Hiragana}\p{Script=Katakana}]/u],
  ['zh', /\p{Script=Han}/u],
  ['ko', /\p{Script=Hangul}/u],
  ['ru', /\p{Script=Cyrillic}/u],
  ['el', /\p{Script=Greek}/u],
  ['ar', /\p{Script=Arabic}/u],
  ['he', /\p{Script=Hebrew}/u],
  ['hi', /\p{Script=Devanagari}/u],
  ['th', /\p{Script=Thai}/u],
]

/** Letters that one language of Latin script has and its neighbours lack. */
const LETTERS: readonly (readonly [string, RegExp])[] = [
  ['de', /[äöüß]/g],
  ['es', /[ñ¿¡]/g],
  ['pt', /[ãõ]/g],
  ['fr', /[êœèçùîôâûë]/g],
  ['sv', /å|ä(?=[^u])/g],
  ['da', /[æø]/g],
  ['no', /[æø]/g],
  ['pl', /[łąęśżźćń]/g],
  ['cs', /[řěůčž]/g],
  ['hu', /[őű]/g],
  ['tr', /[ğışç]/g],
  ['ro', /[șțăî]/g],
  ['vi', /[đơư]|[\u1ea0-\u1ef9]/g],
  ['it', /[àìòù](?=\s|$)/g],
]

/** Spellings inside words that are usual in one language; each word with one counts for less than a function word. */
const SPELLINGS: readonly (readonly [string, RegExp])[] = [
  ['en', /^(?:wh|th|kn)|(?:ing|tion|ght|ould|ness|ly|ed|ough)$|(?:ee|ea|oo)[dklmnpt]/],
  ['de', /sch|(?:ung|keit|heit|lich|isch|ern|cht|chen|zt|ß)|tz|^ge\w{4,}t$|^(?:ver|auf|aus|ein|zu)\w{4,}en$|ck/],
  ['fr', /(?:eux|aux|eau|ment|tion|ille|ère|ées?|ez|ais|ait|oir|que)$|^qu|^(?:l|d|j|n|s|c|qu)'/],
  ['es', /(?:ción|ciones|dad|mente|ado|ada|ar|er|ir|ito|ita|os|as|ando|iendo)$|ll|ñ|ue/],
  ['it', /(?:zione|zioni|mente|tto|tta|tti|are|ere|ire|gli|che|cchi|ità|ella|ello|ato|ata|ano|ono)$|zz|gn|cch/],
  ['pt', /(?:ção|ções|mente|ado|ada|ar|er|ir|inho|inha|os|as|ando|endo|eiro|em)$|lh|nh|ã|õ/],
  ['pl', /[sc]z|rz|dz$|ść$|ów$|(?:ego|emu|ych|owi|ować)$|sk(?:i|im|iej|ich|iego)$|[ęą]$/],
  ['cs', /[ěřů]|(?:ství|ování|ého|ému|ých)$/],
  ['hu', /(?:ság|ség|nak|nek|unk|ünk)$|gy[aáeéoöuü]/],
  ['ro', /(?:ului|elor|ilor|ție|ează|ești)$/],
  ['tr', /(?:ları|leri|lık|yor|mek|mak|acak|ecek)$/],
  ['nl', /(?:ij|heid|lijk|en|isch|tje|je)$|aa|oo|ee|uu|ij|oe|ui/],
]

const INDEX = new Map<string, string[]>()
for (const [language, words] of Object.entries(FUNCTION_WORDS))
  for (const word of new Set(words.split(' '))) INDEX.set(word, [...(INDEX.get(word) ?? []), language])

const NEIGHBOURS: Readonly<Record<string, readonly string[]>> = {
  da: ['no', 'sv'],
  no: ['da', 'sv'],
  sv: ['da', 'no'],
  zh: ['ja'],
  ja: ['zh'],
}

export type DetectedLanguage = { language: string; isSure: boolean; score: number; scoreOf(language: string): number }

const MAX_WORDS = 600

/** The language that most of the words belong to; not sure when there are few words or two languages are close. */
export function detectLanguage(words: readonly string[]): DetectedLanguage | undefined {
  const sample = words.slice(0, MAX_WORDS)
  const letters = sample.join(' ')
  const scriptCounts = new Map<string, number>()
  let latin = 0
  for (const character of /[\u0250-\uffff]/.test(letters) ? letters : '') {
    if (character <= '\u024f') {
      if (character > ' ' && !(character >= '0' && character <= '9')) latin++
      continue
    }
    const script = SCRIPTS.find(([, pattern]) => pattern.test(character))?.[0]
    if (script) scriptCounts.set(script, (scriptCounts.get(script) ?? 0) + 1)
    else latin++
  }
  const [script, count] = [...scriptCounts].sort((a, b) => b[1] - a[1])[0] ?? ['', 0]
  const isDense = script === 'zh' || script === 'ja' || script === 'ko' || script === 'th'
  if (count * (isDense ? 4 : 1) > latin) {
    const language =
      (scriptCounts.get('ja') ?? 0) * 8 > (scriptCounts.get('zh') ?? 0) && script === 'zh' ? 'ja' : script
    return { language, isSure: count >= (isDense ? 3 : 6), score: count, scoreOf: () => 0 }
  }
  const scores = new Map<string, number>()
  const singles = new Set<string>()
  for (const word of sample) {
    // A letter may be the name of something, so each counts once.
    if (word.length === 1 && singles.size === singles.add(word).size) continue
    const languages = INDEX.get(word)
    for (const language of languages ?? [])
      scores.set(language, (scores.get(language) ?? 0) + 1 / Math.sqrt(languages!.length))
  }
  for (const word of sample)
    if (word.length > 3 && !INDEX.has(word))
      for (const [language, pattern] of SPELLINGS)
        if (pattern.test(word)) scores.set(language, (scores.get(language) ?? 0) + 0.35)
  for (const [language, pattern] of /[\u0080-\uffff]/.test(letters) ? LETTERS : []) {
    const hits = letters.match(pattern)?.length ?? 0
    if (hits > 0) scores.set(language, (scores.get(language) ?? 0) + Math.min(1.5 + hits * 0.25, 4))
  }
  const ranking = [...scores].sort((a, b) => b[1] - a[1])
  const [best] = ranking
  if (!best) return undefined
  const rival = ranking.slice(1).find(([language]) => !NEIGHBOURS[best[0]]?.includes(language))?.[1] ?? 0
  const share = best[1] / sample.length
  return {
    language: best[0],
    score: best[1],
    scoreOf: (language) => scores.get(language) ?? 0,
    isSure: best[1] >= (share >= 0.3 ? 1.5 : 1.8) && best[1] >= rival * 1.5 && share >= 0.12,
  }
}

/** Words of one of two close languages and none of those that only the other has. */
export function isApart(words: readonly string[], language: string, other: string): boolean {
  const sample = words.slice(0, MAX_WORDS)
  const countOnly = (one: string, another: string) =>
    new Set(sample.filter((word) => INDEX.get(word)?.includes(one) && !INDEX.get(word)?.includes(another))).size
  return sample.length >= 8 && countOnly(language, other) >= 2 && countOnly(other, language) === 0
}

export const isFunctionWord = (word: string) => INDEX.has(word)

/** How many different function words of a language are among these words. */
export function functionWordsIn(words: readonly string[], language: string): number {
  const found = new Set(words.slice(0, MAX_WORDS).filter((word) => INDEX.get(word)?.includes(language)))
  return found.size
}

export const sameLanguage = (a: string, b: string) => a === b || (NEIGHBOURS[a]?.includes(b) ?? false)

/** The names of languages in the languages that tasks are written in. */
const NAMES: Readonly<Record<string, string>> = {
  en: 'english englisch englische englischen anglais inglés ingles inglese inglês engels engelska engelsk angielski',
  de: 'german deutsch deutsche deutschen allemand alemán aleman tedesco alemão duits tyska',
  fr: 'french französisch französische französischen français francais francés frances francese francês frans franska',
  es: 'spanish spanisch spanische spanischen espagnol español espanol castellano spagnolo espanhol spaans spanska',
  it: 'italian italienisch italienische italienischen italien italiano italiaans',
  pt: 'portuguese portugiesisch portugais portugués portoghese português portugees',
  nl: 'dutch niederländisch holländisch néerlandais holandés neerlandés olandese holandês nederlands',
  sv: 'swedish schwedisch suédois sueco svedese zweeds svenska',
  da: 'danish dänisch danois danés danese',
  no: 'norwegian norwegisch norvégien noruego',
  fi: 'finnish finnisch finnois finlandés',
  pl: 'polish polnisch polonais polaco polacco polski',
  cs: 'czech tschechisch tchèque checo',
  ro: 'romanian rumänisch roumain rumano',
  hu: 'hungarian ungarisch hongrois húngaro',
  tr: 'turkish türkisch turc turco türkçe',
  id: 'indonesian indonesisch bahasa',
  vi: 'vietnamese vietnamesisch',
  zh: 'chinese mandarin chinesisch chinois chino cinese chinês',
  ja: 'japanese japanisch japonais japonés giapponese',
  ko: 'korean koreanisch coréen coreano',
  ru: 'russian russisch russe ruso russo',
  uk: 'ukrainian ukrainisch',
  el: 'greek griechisch grec griego',
  ar: 'arabic arabisch arabe árabe',
  he: 'hebrew hebräisch',
  hi: 'hindi',
  th: 'thai',
  la: 'latin latein',
}

/** How a task asks for its own language: "po polsku", 日本語で. */
const IN_OWN_LANGUAGE: readonly (readonly [string, RegExp])[] = [
  ['ja', /日本語で/],
  ['zh', /用中文|用汉语|中文回答/],
  ['ko', /한국어로/],
  ['ru', /на русском|по-русски/i],
  ['uk', /українською/i],
  ['pl', /\bpo polsku\b/i],
  ['cs', /\bčesky\b|\bv češtině\b/i],
  ['tr', /türkçe(?:\s|$)/i],
  ['fi', /\bsuomeksi\b/i],
  ['hu', /\bmagyarul\b/i],
  ['ro', /în română/i],
  ['el', /στα ελληνικά/i],
  ['ar', /بالعربية/],
  ['he', /בעברית/],
  ['hi', /हि(?:ं|न्)दी में/],
  ['vi', /tiếng việt/i],
]

export const ownLanguageNamed = (text: string): string | undefined =>
  // "In Chinese, and then the English translation" wants both.
  /[\u0080-\uffff]|po polsku|suomeksi|magyarul/i.test(text) && !(/中文/.test(text) && /英文|英语|英語/.test(text))
    ? IN_OWN_LANGUAGE.find(([, pattern]) => pattern.test(text))?.[0]
    : undefined

const LANGUAGE_OF_NAME = new Map(
  Object.entries(NAMES).flatMap(([language, names]) => names.split(' ').map((name) => [name, language] as const)),
)

/** Names of languages in scripts without spaces and in languages with many cases. */
const NAME_STEMS: readonly (readonly [string, RegExp])[] = [
  [
    'en',
    /英语|英文|英語|영어|английск|англійськ|αγγλικ|الإنجليزية|\b(?:ingilizce|angličtin|anglicky|angielsk|englanni|angol(?:ra|ul)|engleză|engelsk|engleski)/iu,
  ],
  [
    'de',
    /德语|德文|ドイツ語|독일어|немецк|німецьк|γερμανικ|الألمانية|\b(?:almanca|němčin|německy|niemieck|saksaksi|német(?:re|ül)|germană|tysk|njemački)/iu,
  ],
  [
    'fr',
    /法语|法文|フランス語|프랑스어|французск|французьк|γαλλικ|الفرنسية|\b(?:fransızca|francouzštin|francouzsky|francusk|ranskaksi|franci(?:ára|ául)|franceză|fransk)/iu,
  ],
  [
    'es',
    /西班牙语|スペイン語|스페인어|испанск|іспанськ|ισπανικ|الإسبانية|\b(?:ispanyolca|španělštin|španělsky|hiszpańsk|espanjaksi|spanyol(?:ra|ul)|spaniolă|spansk)/iu,
  ],
  [
    'it',
    /意大利语|イタリア語|이탈리아어|итальянск|італійськ|ιταλικ|الإيطالية|\b(?:italyanca|italštin|italsky|włosk|italiaksi|olasz(?:ra|ul)|italiană|italiensk)/iu,
  ],
  ['ja', /日语|日文|日本語|일본어|японск|\b(?:japonca|japonštin|japońsk)/iu],
  ['zh', /中文|汉语|中国語|중국어|китайск|\b(?:çince|čínštin|chińsk)/iu],
]

/** The languages that a text names in one of these ways. */
export const languagesByStem = (text: string): string[] =>
  NAME_STEMS.flatMap(([language, pattern]) => (pattern.test(text) ? [language] : []))

export const languageNamed = (word: string) => LANGUAGE_OF_NAME.get(word)
