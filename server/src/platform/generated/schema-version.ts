/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 33
export const SCHEMA_SHA256 = '9428052d85e6cacd5400976c0807f0a0945ffcea671e5a41fbfaebbc417c45c3'
