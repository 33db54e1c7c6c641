/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 18
export const SCHEMA_SHA256 = 'df577b53df51f524798d2f8bc7a961aa980dcbd98720adb29bdad44f5be4add6'
