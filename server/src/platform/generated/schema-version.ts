/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 10
export const SCHEMA_SHA256 = 'db22e36fac9ba6d0dadefc53496426b460d782302348d0451b4ca44e965b8775'
