import type { Static, TSchema } from 'typebox'

/**
 * An SQL function of `server/sql` that takes one JSON value, with the schemas of its input and of its result.
 * `server/test/steps.test.ts` calls every definition and fails when SQL reads a key that the schema lacks, or never reads
 * one that it has, because a misspelt key would otherwise become a silent NULL.
 */
export type StepDefinition<Input extends TSchema = TSchema, Answer extends TSchema = TSchema> = {
  readonly name: string
  readonly input: Input
  readonly answer: Answer
  /** Whether the function takes a batch: an array of inputs, and whether they may have been committed before. */
  readonly isSet: boolean
}

export type StepInput<Definition extends StepDefinition> = Static<Definition['input']>
export type StepAnswer<Definition extends StepDefinition> = Static<Definition['answer']>

export const defineStep = <Input extends TSchema, Answer extends TSchema>(
  name: string,
  input: Input,
  answer: Answer,
): StepDefinition<Input, Answer> => ({ name, input, answer, isSet: false })

export const defineSetStep = <Input extends TSchema, Answer extends TSchema>(
  name: string,
  input: Input,
  answer: Answer,
): StepDefinition<Input, Answer> => ({ name, input, answer, isSet: true })
