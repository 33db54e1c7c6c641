/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 23
export const SCHEMA_SHA256 = '272f4f000a5e6d1f34443279f87cd4861b77374e8bbc8d4c170a705df467567b'
