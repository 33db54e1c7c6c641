import { expect, test } from 'vitest'
import { validationMessage } from './validation-message.ts'

const unknownProperty = (additionalProperty: string) =>
  validationMessage(
    [{ instancePath: '', params: { additionalProperty }, parentSchema: { properties: { outcome: {}, limit: {} } } }],
    'querystring',
  )

test('a member of another list is named by its name here', () => {
  expect(unknownProperty('status')).toBe("querystring has the unknown property 'status'. Did you mean 'outcome'?")
})

test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty'])('%s is a name like any other', (name) => {
  expect(unknownProperty(name)).toContain(`has the unknown property '${name}'.`)
})
