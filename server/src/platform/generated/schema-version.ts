/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 25
export const SCHEMA_SHA256 = 'f9efd0b493bb9e9c52847b0d1ee2fbf51d38458f23e051a669f2a78732091c70'
