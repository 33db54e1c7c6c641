/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 28
export const SCHEMA_SHA256 = '6e218e594cc5b86fd2b4905144bae80284b68e4013caa7cb6a928746d2ca188d'
