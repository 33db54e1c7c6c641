/** Written by npm run gen: one more with each change of the migrations or of the functions under sql/. */
export const SCHEMA_VERSION = 2
export const SCHEMA_SHA256 = 'd56439b3e80c84a1e992714d75b48601e32e48186901a343ef2954709b214831'
