/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 24
export const SCHEMA_SHA256 = 'b247c363bb1f39121271f2c977b6af891537bc1743751ab00cebe9712fd01438'
