import { Type } from 'typebox'
import { plainName } from '../../platform/schema.ts'
import { TAG_NAME } from './assess/payment-facts.ts'

/** At most so many tags on one payment. */
const MAX_TAGS = 8

/** Who spends, in every request that leads to a payment. */
export const payerFields = {
  spender: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      ...plainName,
      description: 'The agent or person that spends. A key that is bound to a spender cannot name another.',
    }),
  ),
  tags: Type.Optional(
    Type.Record(
      Type.String({ pattern: `^${TAG_NAME}$` }),
      Type.String({ minLength: 1, maxLength: 200, ...plainName }),
      {
        maxProperties: MAX_TAGS,
        additionalProperties: false,
        'x-form': "1 to 64 letters, digits, '_', '.' or '-'",
        description:
          'Up to eight names with values, for example project and cost centre; rules, budgets and reports know them.',
      },
    ),
  ),
}

/** The mandate that the payment uses alone. Without it, the first that fits is used. */
export const mandateField = {
  mandate_id: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 80,
      description: 'A mandate that is used alone. Left out, the first that fits is used, if any binds the payment.',
    }),
  ),
}

/** What records say of who spent. */
export const payerRecord = {
  spender: Type.String({ description: 'Who spends; `key:<id>` where nothing named a spender.' }),
  team: Type.Union([Type.String(), Type.Null()]),
  tags: Type.Record(Type.String(), Type.String()),
}
