/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 8
export const SCHEMA_SHA256 = '166d6d5cb35267140b579376cb3c83a3ce6dc0c73912045a925c9caa044d5033'
