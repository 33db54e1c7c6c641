/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 33
export const SCHEMA_SHA256 = '27e65f4ff9ef1641606ec408a9f09f6297386c15761b8279207e7aefa09f4d4e'
