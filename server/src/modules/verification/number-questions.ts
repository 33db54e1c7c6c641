import { type Finding, failed, notApplicable, passed } from './finding.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'

const isPrime = (value: number) => {
  for (let i = 2; i * i <= value; i++) if (value % i === 0) return false
  return value >= 2
}

const SAYS_YES =
  /^\W*(?:yes|true|correct|indeed|ja|oui|sí|si|sim|да)\b|\b(?:is|are) (?:a |indeed |also )?(?:prime|divisible|even|odd)\b/iu
const SAYS_NO =
  /^\W*(?:no|false|nein|non|não|нет|nope)\b|\b(?:is|are)(?: not|n't) (?:a )?(?:prime|divisible|even|odd|an? )\b/iu

/** "Is 91 prime?", "is 51 divisible by 3?", "is 7 even?" */
export function checkPrime(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 300).replaceAll(/(?<=\d),(?=\d{3}(?!\d))/g, '')
  const prime = /\bis (\d{1,7}) (?:a )?prime\b/i.exec(request)
  const divisible = /\bis (\d{1,9}) (?:evenly )?divisible by (\d{1,6})\b/i.exec(request)
  const parity = /\bis (\d{1,9}) (?:an? )?(even|odd)\b/i.exec(request)
  const leap = /\b(?:is|was) (\d{4}) a leap year\b/i.exec(request)
  if (!prime && !divisible && !parity && !leap) return notApplicable
  const year = Number(leap?.[1])
  const isTrue = prime
    ? isPrime(Number(prime[1]))
    : divisible
      ? Number(divisible[1]) % Number(divisible[2]) === 0
      : parity
        ? (Number(parity[1]) % 2 === 0) === (parity[2]!.toLowerCase() === 'even')
        : (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  const opening = /^\W*(yes|no|true|false|ja|nein|oui|non|sí|si)\b/i.exec(output.raw)?.[1]?.toLowerCase()
  const saysNo = opening ? /^(?:no|false|nein|non)$/.test(opening) : SAYS_NO.test(output.raw)
  const saysYes = !saysNo && SAYS_YES.test(output.raw)
  if (saysNo === saysYes) return notApplicable
  return saysYes === isTrue ? passed : failed('The answer is the wrong one of yes and no.')
}
