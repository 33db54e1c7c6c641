/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 33
export const SCHEMA_SHA256 = 'c8762ab6c44668f42dba9875e4b62ec7ae20686684f1d60fde1d1cbe743479b0'
