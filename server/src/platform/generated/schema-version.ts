/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 5
export const SCHEMA_SHA256 = 'fcaace92f7beafdf57c839df6e0516fcd4692befa3f922726e4c0256aee01bf0'
