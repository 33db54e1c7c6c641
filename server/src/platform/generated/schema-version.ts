/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 9
export const SCHEMA_SHA256 = '6c6abb52bf1f75a10510f0ad7106fa2a2d47a0e4f0723715b18a256c90428b6b'
