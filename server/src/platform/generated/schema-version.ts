/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 20
export const SCHEMA_SHA256 = '6555611fa8549603566e37996ab2a179010e98ebbd0ff74636f2ab56614ac9e9'
