import { createCodeParser } from '../adapters/parsers/code-parser.ts'
import { createVerification } from '../modules/verification/verification.ts'

/** The verification of runs, with its parser of code. */
export const openVerification = () => createVerification({ parseCode: createCodeParser().parse })
