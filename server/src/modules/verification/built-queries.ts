import { statementsOf } from './code-guards.ts'

const QUERY = /\b(?:select|insert\s{1,4}into|update|delete\s{1,4}from|where|values|having)\b/i

/** Names of parts that no parameter can stand for, and of constants. */
const STRUCTURE = /placeholder|marks|columns?$|cols$|fields$|table|params?$|^[A-Z][A-Z_\d]{2,40}$/

const STRINGS = /"[^"\n]{0,400}"|'[^'\n]{0,400}'/g

/** A string that ends, and a variable that is joined to it: `" + name`, `' . $name`, `" % name`. */
const JOINED = /["']\s{0,8}(?:\+|\.(?=\s{0,2}\$|\s\w)|\s%)\s{0,8}\(?([$\w][\w.$]{0,60})/g

/** Variables inside a string: `f"{name}"`, `$"{name}"`, "#{name}", "\(name)". */
const FILLED = /(?:\b[fF]|\$@?)["'][^\n]{0,400}\{[A-Za-z_]|"[^"\n]{0,300}(?:#\{|\\\()[A-Za-z_@]/
const VARIABLE = /(?:\{|#\{|\\\(|\$\{?)\$?([A-Za-z_@][\w.]{0,40})/g

/** In these languages a dollar sign in a string stands for a variable. */
const HAS_DOLLARS = /<\?php|\$\w{1,30}\s?=|\$\w{1,30}->|\bfun \w|\bval \w|\bmy \$/

/** Whether the code puts a query together from strings and variables. */
export function buildsQuery(code: string): boolean {
  const text = code
    .replaceAll(/"""([^"]{0,800})"""/g, (_, inner: string) => `"${inner.replace(/\s+/g, ' ')}"`)
    .replaceAll(/\n\s{0,40}(?=[+.]\s?["'$\w])|(?<=["'\w)]\s?[+.])\s{0,4}\n\s{0,40}/g, ' ')
  const hasDollars = HAS_DOLLARS.test(text)
  const queries = new Set<string>()
  return (
    hasFilledTemplate(text) ||
    statementsOf(text).some((statement) => {
      const assigned = /(\w{1,40})(?:\s?:\s?\w{1,20})?\s?([+.]?=)(?!=)\s?(.?)/.exec(statement)
      const name = assigned?.[1] ?? ''
      const isMore = queries.has(name) && assigned![2] !== '='
      if (isMore && /[$A-Za-z_]/.test(assigned![3]!) && !/=\s?[fF$@]{1,2}["']/.test(statement)) return true
      const isCondition = /\.(?:where|having|whereRaw)\(\s?["']/.test(statement)
      if (!isMore && !isCondition && !QUERY.test((statement.match(STRINGS) ?? []).join(' '))) return false
      if (name) queries.add(name)
      return isBuilt(statement, hasDollars)
    })
  )
}

function isBuilt(statement: string, hasDollars: boolean): boolean {
  const isValue = ([, name]: RegExpMatchArray | readonly string[]) => !STRUCTURE.test(name!)
  if ([...statement.matchAll(JOINED)].some(isValue)) return true
  if (/["']\s?\.(?:format|concat|formatted)\(|["']\s?\)\s?\.append\(\s?[a-z]/.test(statement)) return true
  if (/\b(?:[sS]?printf|String\.format|string\.Format|format!)\(\s?["'`]/.test(statement)) return true
  const isFilled = FILLED.test(statement) && !/Interpolated|FromSql\(/.test(statement)
  const filled = (isFilled ? [statement] : hasDollars ? (statement.match(/"[^"\n]{0,400}"/g) ?? []) : []).join(' ')
  return [...filled.matchAll(VARIABLE)].some(isValue)
}

/** A template with a query and a variable; one with a tag in front of it is the tag's matter. */
const hasFilledTemplate = (code: string): boolean =>
  [...code.matchAll(/([\w)]?)`([^`]{0,500})`/g)].some(
    ([, tag, inner]) =>
      !tag &&
      QUERY.test(inner!) &&
      [...inner!.matchAll(/(\b(?:order|group)\s{1,4}by\s{1,4})?\$\{\s?([A-Za-z_][\w.]{0,40})/gi)].some(
        // A column cannot be a parameter: a plain variable in its place was looked up in a list.
        ([, by, name]) => !STRUCTURE.test(name!) && !(by && !name!.includes('.')),
      ),
  )
