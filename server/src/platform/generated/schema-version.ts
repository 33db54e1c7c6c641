/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 32
export const SCHEMA_SHA256 = 'e62936b02bea08e79954c0d3130e1833aa3994c623a1fc455437c7e239cb89b3'
