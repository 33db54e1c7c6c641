/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 15
export const SCHEMA_SHA256 = '90e291ccb69e86e9e6b0ac43f9a1b6c8da58df1a724b9e133f1ee7ba77d2149f'
