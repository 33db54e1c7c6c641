/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 6
export const SCHEMA_SHA256 = '5839287de5a1b6c8e8da11e91d3772a75528fe059d00f0a2da8d96a2c13e3894'
