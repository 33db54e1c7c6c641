/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 26
export const SCHEMA_SHA256 = '6a1fb7ac01230fe00c9564b267923cd677b8feb59eef858a3a59cf719ef16dd4'
