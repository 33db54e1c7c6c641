import { combine, doubt, type Finding, notApplicable } from './finding.ts'
import { checkCodeLanguage, checkNamed } from './requested-code.ts'
import { checkDetails } from './requested-details.ts'
import { checkCase, checkFormats, checkJson, checkList, checkNumbering, checkTable } from './requested-form.ts'
import { checkLength, checkTranslationLength } from './requested-length.ts'
import { checkCount, checkCountEach, checkOnePerLine } from './requested-size.ts'
import { checkAcrostic, checkForbidden, checkWanted } from './requested-words.ts'
import { checkRequiredPoints } from './required-points.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'

/** What the task asks for by name: how many, how long, in which form, with which words. */
export const checkAskedFor = (task: ReadTask, output: ReadText): Finding =>
  // Who asks for the text that is missing cannot keep to its form.
  task.lacksMaterial || task.isVague
    ? notApplicable
    : combine([
        checkJson(task, output),
        checkTable(task, output),
        doubt(checkList(task, output)),
        checkCount(task, output),
        checkCountEach(task, output),
        checkLength(task, output),
        checkWanted(task, output),
        checkForbidden(task, output),
        checkCodeLanguage(task, output),
        checkCase(task, output),
        checkNumbering(task, output),
        checkNamed(task, output),
        checkTranslationLength(task, output),
        checkFormats(task, output),
        checkAcrostic(task, output),
        checkOnePerLine(task, output),
        checkRequiredPoints(task, output),
        checkDetails(task, output),
      ])
