import { appendFileSync } from 'node:fs'

/** Says that somebody else's software has done its part in a test that passed; main.ts collects the names in a file. */
export function noteRan(name: string) {
  console.log(`ran ${name}`)
  const { OTHER_SOFTWARE_REPORT } = process.env
  if (OTHER_SOFTWARE_REPORT) appendFileSync(OTHER_SOFTWARE_REPORT, `${name}\n`)
}
