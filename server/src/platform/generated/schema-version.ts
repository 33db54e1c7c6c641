/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 13
export const SCHEMA_SHA256 = '12360a7b76ff393f2f92302dae64a9336e5f85e497512628c4044e4ad5112424'
