import { expect, test } from 'vitest'
import { groupEventTypes } from './event-groups.ts'

test('types are grouped by what they are about, and a kind that this page does not know is shown too', () => {
  const types = ['run.completed', 'rh_run.pending', 'run.failed', 'comet.seen'].map((type) => ({
    type,
    description: type,
  }))
  expect(groupEventTypes(types).map(({ name, types: members }) => [name, members.map(({ type }) => type)])).toEqual([
    ['Runs', ['run.completed', 'run.failed']],
    ['Brokerage', ['rh_run.pending']],
    ['comet', ['comet.seen']],
  ])
})
