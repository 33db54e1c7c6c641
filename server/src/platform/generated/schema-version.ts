/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 30
export const SCHEMA_SHA256 = 'aba222ab5b90f3970f535950b46b28ae9d290233819e6845e9923970ed2e4b62'
