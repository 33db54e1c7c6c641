/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 33
export const SCHEMA_SHA256 = '9134b538e68e716b5db13a57d79d16c30303d035bb66e7246e8e33ff959db715'
