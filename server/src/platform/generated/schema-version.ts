/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 4
export const SCHEMA_SHA256 = '3771e020fb4da0ee4a3a9ae73d2f985e44622de4c13865a442d8beddfde1fb3d'
