/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 19
export const SCHEMA_SHA256 = '5bc6536acb895dabd723e1e97da42807db76f0eccc1203c128f5d015b92fd337'
