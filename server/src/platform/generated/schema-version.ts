/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 3
export const SCHEMA_SHA256 = '2e0695b46839d7caedbdd91707f4c58eacf846c6914fe889ecd4169f04f695b8'
