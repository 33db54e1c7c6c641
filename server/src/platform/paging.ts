import { Type } from 'typebox'

/**
 * Where a list goes on: the id that ended the page before. What cannot be one is refused; compared as it is, it would
 * begin the list anew or end it, and the caller would not notice.
 */
export const cursorOf = (prefix: string, description = 'next_cursor of the page before') =>
  Type.Optional(Type.String({ pattern: `^${prefix}_[\\w-]{1,64}$`, description }))
