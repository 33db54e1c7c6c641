/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 33
export const SCHEMA_SHA256 = '698864587afae592a2fe71203ddfb8071cbb2535edf94400d9af7673f8d633b2'
