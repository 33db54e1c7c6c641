import schemas from '../generated/request-schemas.json' with { type: 'json' }
import type { Schemas } from './json-schema.ts'

/** The schemas of the requests that forms help to write, made from the API description. */
export const requestSchemas = schemas as unknown as Schemas
