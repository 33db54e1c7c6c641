/** Misspellings that are wrong in every context. */
import { spendSteps } from '../../../platform/step-budget.ts'

const MISSPELLINGS: Readonly<Record<string, string>> = Object.fromEntries(
  (
    'accomodate:accommodate acheive:achieve adress:address alot:a_lot aparent:apparent begining:beginning ' +
    'beleive:believe calender:calendar catagory:category collegue:colleague comittee:committee commited:committed ' +
    'concious:conscious curiousity:curiosity definately:definitely definitly:definitely dissapoint:disappoint ' +
    'embarass:embarrass enviroment:environment existance:existence experiance:experience familar:familiar ' +
    'finaly:finally foriegn:foreign fourty:forty foward:forward freind:friend goverment:government ' +
    'garantee:guarantee gaurantee:guarantee happend:happened harrass:harass imediately:immediately ' +
    'independant:independent interupt:interrupt knowlege:knowledge liason:liaison libary:library lisence:license ' +
    'maintainance:maintenance millenium:millennium mispell:misspell neccessary:necessary necesary:necessary ' +
    'noticable:noticeable occassion:occasion occured:occurred occuring:occurring occurence:occurrence ' +
    'oppurtunity:opportunity persistant:persistent posession:possession prefered:preferred priviledge:privilege ' +
    'probaly:probably publically:publicly realy:really reccomend:recommend recomend:recommend recieve:receive ' +
    'recieved:received refered:referred relevent:relevant resturant:restaurant rythm:rhythm seperate:separate ' +
    'sieze:seize similiar:similar sincerly:sincerely speach:speech succesful:successful successfull:successful ' +
    'suprise:surprise tahn:than teh:the thier:their tommorow:tomorrow tommorrow:tomorrow tomorow:tomorrow ' +
    'tounge:tongue truely:truly unfortunatly:unfortunately untill:until usefull:useful vaccum:vacuum wether:whether ' +
    'wich:which wierd:weird writting:writing'
  )
    .split(' ')
    .map((pair) => pair.replace('_', ' ').split(':') as [string, string]),
)

/** Words that are easily confused, where the next word shows which one was meant. */
const CONFUSED_WORDS: readonly (readonly [RegExp, string])[] = [
  [/\btheir (?=(?:going|coming|trying|getting|leaving|not)\b)/gi, "they're "],
  [/\btheir (?=(?:is|are|was|were)\b)/gi, 'there '],
  [/\byour (?=(?:welcome|going|coming|right|wrong|not)\b(?! \w+(?:s|ed)\b))/gi, "you're "],
  [/\bits (?=(?:a|an|the|not|been|going)\b)/gi, "it's "],
  [/\btoo (?=(?:the|a|an|my|your|our|his|her|be|go|do|see|get|make)\b)/gi, 'to '],
  [/\b(could|should|would|must|might) of\b/gi, '$1 have'],
  [/\b(more|less|better|worse|rather|other|larger|smaller|higher|lower) then\b/gi, '$1 than'],
]

/** The corrected text, with a description of each change. */
export function correctSpelling(text: string): { text: string; changes: string[] } {
  spendSteps(text.length * CONFUSED_WORDS.length)
  const changes: string[] = []
  const recordChange = (before: string, after: string) => {
    const replacement = /^\p{Lu}/u.test(before) ? after.charAt(0).toUpperCase() + after.slice(1) : after
    if (replacement !== before) changes.push(`“${before.trim()}” → “${replacement.trim()}”`)
    return replacement
  }
  let correctedText = text.replace(/\p{L}+/gu, (word) => {
    const correction = Object.hasOwn(MISSPELLINGS, word.toLowerCase()) ? MISSPELLINGS[word.toLowerCase()]! : undefined
    return correction === undefined ? word : recordChange(word, correction)
  })
  for (const [pattern, correction] of CONFUSED_WORDS)
    correctedText = correctedText.replace(pattern, (match, firstWord) =>
      recordChange(match, correction.replace('$1', String(firstWord))),
    )
  correctedText = correctedText.replace(/\b(the|a|an|and|of|to|in|is|for|with|we|it) \1\b/gi, (match, word) =>
    recordChange(match, word),
  )
  return { text: correctedText, changes }
}
