/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 16
export const SCHEMA_SHA256 = '2de89a0649c0cb03f34767344643e27a5fb85babeae41dfb92ac2948069a508f'
