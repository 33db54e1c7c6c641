/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 31
export const SCHEMA_SHA256 = 'd3e45bcb954204e9c98eb5052afbe4620cc255dd7b36e32b6b926d7cb6382477'
