/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 22
export const SCHEMA_SHA256 = 'a5a284fde7a1264d002c1cdb53c1d65beab5f9d1104641003f658dffe358dfce'
