import { Type } from 'typebox'
import { pageFields } from '../../platform/paging.ts'
import { nullableText, oneOf, pattern } from '../../platform/schema.ts'
import { spendDimensions } from './spend.store.ts'
import { MAX_DAYS, MAX_DIMENSIONS, MAX_GROUPS } from './spend.ts'

const Time = (description: string) =>
  Type.Optional(
    Type.String({
      ...pattern(
        '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:\\d{2}))?$',
        'a day (2026-11-16) or a time with its zone (2026-11-16T08:00:00Z)',
      ),
      maxLength: 40,
      description,
    }),
  )

export const SpendQuery = Type.Object(
  {
    group_by: Type.Optional(
      Type.String({
        ...pattern('^[a-z]+(,[a-z]+)*$', 'names of dimensions with a comma between them'),
        maxLength: 100,
        description: `Of ${spendDimensions.join(', ')}: one, or at most ${MAX_DIMENSIONS} with a comma between them; day by default.`,
      }),
    ),
    tag: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'With group_by=tag: the name of the tag whose values are the groups.',
      }),
    ),
    from: Time(
      `A day (UTC) or a time, inclusive; by default the whole hour 30 days before \`to\`, at most ${MAX_DAYS} days before it.`,
    ),
    to: Time('A day (UTC) or a time, exclusive; now by default.'),
    time_zone: Type.Optional(
      Type.String({
        ...pattern('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$', 'the name of a time zone (Europe/Zurich)'),
        maxLength: 64,
        description: 'The zone whose days are the groups of group_by=day; UTC by default.',
      }),
    ),
    format: Type.Optional(
      oneOf(['json', 'csv'], { description: 'Default: csv if the request accepts text/csv, else json.' }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_GROUPS, description: 'Groups in a page; 100 by default.' }),
    ),
    cursor: Type.Optional(
      Type.String({ minLength: 1, maxLength: 2_000, description: 'next_cursor of the page before' }),
    ),
  },
  { additionalProperties: false },
)

export const spendSums = {
  amount: Type.String({ description: 'Money that is counted as spent, in atomic units (micro-USDC).' }),
  amount_usdc: Type.Number(),
  count: Type.Integer({ description: 'Of how many runs, loops, payments and spend trades.' }),
  reported: Type.String({
    description: 'The part of `amount` that nobody but the tenant has seen paid, or that the chain does not show.',
  }),
  reported_usdc: Type.Number(),
  notional: Type.String({ description: 'Executed notional of all other trades; not part of `amount`.' }),
  notional_usdc: Type.Number(),
  trades: Type.Integer({ description: 'Of how many trades.' }),
}

export const SpendResponse = Type.Object(
  {
    from: Type.String(),
    to: Type.String(),
    group_by: Type.Array(oneOf(spendDimensions)),
    tag: nullableText,
    totals: Type.Object(spendSums, { description: 'Of all groups, on this page or not.' }),
    groups: Type.Array(
      Type.Object({
        ...Object.fromEntries(spendDimensions.map((dimension) => [dimension, Type.Optional(nullableText)])),
        ...spendSums,
      }),
      { description: 'In the order of their names; null is the group of what has no such name.' },
    ),
    ...pageFields,
  },
  { title: 'SpendResponse' },
)
