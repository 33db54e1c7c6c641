/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 7
export const SCHEMA_SHA256 = '68c2c41f86c9155395d16080059899bbfcf6cad8d74b6b761be1184c1ff035fe'
