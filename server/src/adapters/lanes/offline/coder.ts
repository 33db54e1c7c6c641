import { type Brief, extractTopic } from './brief.ts'
import type { Report, Section } from './report.ts'
import { type FunctionInfo, findExceededLimit, findSources, type Source, type SourceAnalysis } from './source.ts'
import { analyseJavaScript } from './source-javascript.ts'
import { analyseJson } from './source-json.ts'
import { analysePython } from './source-python.ts'
import { analyseSql, MAX_SQL_CHARACTERS } from './source-sql.ts'
import { capitalise, clip, extractContentWords, formatCount } from './text.ts'

const METHOD =
  'Offline coder: real parsers and fixed rules over the code in your task; it reads code, it does not run it, and no language model is used.'

const NOT_PARSED = 'Not parsed.'

/** Parses the code in the task and reports syntax errors, complexity, smells and a test skeleton. */
export async function reviewCode(brief: Brief): Promise<Report> {
  const sources = findSources(brief)
  if (sources.length === 0) return reportScaffold(brief)
  const analyses: SourceAnalysis[] = []
  let sqlCharacters = MAX_SQL_CHARACTERS
  for (const source of sources) {
    analyses.push(await analyseSource(source, sqlCharacters))
    if (source.language === 'sql') sqlCharacters = Math.max(0, sqlCharacters - source.text.length)
  }
  const errors = analyses.flatMap((analysis) => analysis.errors)
  const functions = analyses.flatMap((analysis) => analysis.functions)
  const smells = analyses.flatMap((analysis) => analysis.smells)
  const mostComplex = [...functions].sort((a, b) => b.complexity - a.complexity)[0]
  return {
    lane: 'coder',
    title: `Code review: ${sources.map((source) => source.dialect || source.language).join(', ')}`,
    summary: describeSummary(errors.length, functions.length, smells.length, mostComplex),
    sections: [
      ...sources.map((source, i) => buildSyntaxSection(source, analyses[i]!, sources.length > 1 ? ` ${i + 1}` : '')),
      ...buildComplexitySection(functions),
      {
        heading: 'Smells',
        lines:
          smells.length > 0
            ? smells.slice(0, 20).map((smell) => `Line ${smell.line}: ${smell.message}`)
            : errors.length > 0
              ? ['Not judged where the code could not be read.']
              : ['None of the rules fired.'],
      },
      ...buildTestSection(sources, functions),
    ],
    method: METHOD,
  }
}

/** Analyses one source. For a language without a parser, only its lines are counted. */
async function analyseSource(source: Source, sqlCharacters: number): Promise<SourceAnalysis> {
  if (source.language === 'other') {
    const lines = source.text.split('\n')
    return {
      errors: [],
      functions: [],
      smells: [],
      facts: [
        `No parser here for “${clip(source.dialect, 20)}”: ${lines.length} lines, longest ${Math.max(...lines.map((line) => line.length))} characters.`,
      ],
    }
  }
  const exceededLimit = source.language === 'json' ? undefined : findExceededLimit(source.text)
  if (exceededLimit) {
    const message = `${exceededLimit} the code is not parsed here, and hardly readable anywhere.`
    return { errors: [], functions: [], smells: [{ line: 1, message }], facts: [NOT_PARSED] }
  }
  if (source.language === 'javascript') return analyseJavaScript(source.text, source.dialect)
  if (source.language === 'python') return analysePython(source.text)
  if (source.language === 'sql') return analyseSql(source.text, sqlCharacters)
  return analyseJson(source.text)
}

function describeSummary(
  errors: number,
  functions: number,
  smells: number,
  mostComplex: FunctionInfo | undefined,
): string {
  const syntax =
    errors === 0
      ? 'The code parses.'
      : `${formatCount(errors, 'syntax error')}: fix ${errors === 1 ? 'it' : 'them'} first.`
  const complexity = mostComplex
    ? ` ${formatCount(functions, 'function')}; the most complex is \`${mostComplex.name}\` with ${formatCount(mostComplex.complexity, 'path')}.`
    : ''
  return `${syntax}${complexity} ${formatCount(smells, 'smell')} found.`
}

function buildSyntaxSection(source: Source, analysis: SourceAnalysis, number: string): Section {
  const lines = source.text.split('\n')
  return {
    heading: `Syntax${number}`,
    lines: [
      ...analysis.facts,
      ...analysis.errors
        .slice(0, 10)
        .map(
          (error) =>
            `Line ${error.line}, column ${error.column}: ${error.message}. \`${clip((lines[error.line - 1] ?? '').trim(), 80).replaceAll('`', "'")}\``,
        ),
      ...(analysis.errors.length === 0 && analysis.facts[0] !== NOT_PARSED && source.language !== 'other'
        ? ['No syntax errors.']
        : []),
    ],
  }
}

function buildComplexitySection(functions: readonly FunctionInfo[]): Section[] {
  if (functions.length === 0) return []
  const verdict = (info: FunctionInfo) =>
    info.complexity > 10
      ? 'split it: too many paths to test'
      : info.depth > 3
        ? 'flatten it: nested too deep'
        : info.lines > 60
          ? 'shorten it'
          : info.parameters.length > 5
            ? 'pass one object instead'
            : 'fine'
  const rows = functions
    .slice(0, 20)
    .map((info) => [
      `\`${clip(info.name, 40)}\``,
      String(info.line),
      String(info.lines),
      String(info.parameters.length),
      String(info.complexity),
      String(info.depth),
      verdict(info),
    ])
  return [
    {
      heading: 'Complexity',
      table: { columns: ['function', 'line', 'lines', 'parameters', 'paths', 'depth', 'verdict'], rows },
    },
  ]
}

function buildTestSection(sources: readonly Source[], functions: readonly FunctionInfo[]): Section[] {
  const testable = functions.filter((info) => /^[\w$]+$/.test(info.name) && info.name !== 'constructor').slice(0, 4)
  if (testable.length === 0) return []
  const isPython = sources.some((source) => source.language === 'python')
  const text = testable.map((info) => (isPython ? renderPytest(info) : renderVitest(info))).join('\n\n')
  return [
    {
      heading: 'Test skeleton',
      prose: 'One ordinary case, one edge for each parameter, one failure. Fill in the values you expect.',
      code: { language: isPython ? 'python' : 'ts', text },
    },
  ]
}

const renderPytest = (info: FunctionInfo) =>
  [
    `def test_${info.name}_ordinary_case():`,
    `    result = ${info.name}(${info.parameters.map((parameter) => `${parameter.replace(/^\*+/, '')}=...`).join(', ')})`,
    '    assert result == ...',
    ...info.parameters.map(
      (parameter) =>
        `\n\ndef test_${info.name}_edge_of_${parameter.replace(/^\*+/, '')}():\n    # empty, zero, None, very large\n    assert ${info.name}(...) == ...`,
    ),
  ].join('\n')

/** The skeleton is valid code before anything is filled in. */
function renderVitest(info: FunctionInfo): string {
  const names = info.parameters.map((parameter) => parameter.replace('...', ''))
  const call = `${info.async ? 'await ' : ''}${info.name}(${names.join(', ')})`
  const opening = info.async ? 'async () => {' : '() => {'
  return [
    `describe('${info.name}', () => {`,
    `  test('does its ordinary work', ${opening}`,
    ...(names.length > 0 ? [`    const [${names.join(', ')}] = [/* your values */]`] : []),
    `    expect(${call}).toEqual(/* expected */)\n  })`,
    ...names.map((name) => `  test.todo('holds at the edge of ${name}: empty, zero, undefined, very large')`),
    ...(info.complexity > 3 ? [`  test.todo('takes each of its ${info.complexity} paths')`] : []),
    '})',
  ].join('\n')
}

/** For a task without code: a function signature from its words, design questions and a test. */
function reportScaffold(brief: Brief): Report {
  const words = extractContentWords(brief.instruction)
    .filter((word) => /^[a-z][a-z0-9]*$/.test(word) && !REQUEST_WORDS.has(word))
    .slice(0, 3)
  const isPython = /\bpython|django|flask|pandas\b/i.test(brief.task)
  const name = isPython
    ? words.join('_') || 'solve'
    : words.map((word, i) => (i === 0 ? word : capitalise(word))).join('') || 'solve'
  const text = isPython
    ? `def ${name}(value):\n    """${clip(extractTopic(brief), 70)}"""\n    raise NotImplementedError\n\n\ndef test_${name}():\n    assert ${name}(...) == ...`
    : `/** ${clip(extractTopic(brief), 70)} */\nexport function ${name}(input: unknown): unknown {\n  throw new Error('not written yet')\n}\n\ntest('${name} does its ordinary work', () => {\n  expect(${name}(/* input */)).toEqual(/* expected */)\n})`
  const isSql = !isPython && /\bsql\b|\bquery\b.{0,40}\b(?:table|rows?|per|department|database)\b/i.test(brief.task)
  const query = `-- ${clip(extractTopic(brief), 70)}\nselect [columns]\nfrom [table]\nwhere [condition]\ngroup by [what each row of the answer stands for]\norder by [columns];`
  return {
    lane: 'coder',
    title: `Start for: ${clip(extractTopic(brief), 70)}`,
    summary:
      'There is no code in the task to read. Without a model this lane does not write programs; it gives you the frame and the questions that decide the design.',
    sections: [
      {
        heading: 'Frame',
        code: isSql ? { language: 'sql', text: query } : { language: isPython ? 'python' : 'ts', text },
      },
      {
        heading: 'Settle first',
        lines: [
          'What are input and output, with one real example of each?',
          'What happens with nothing, with too much, with the wrong type?',
          'How large does the input get, and how fast must it be?',
          'Which failure should the caller see, and which should be retried?',
        ],
      },
      {
        heading: 'For a review',
        lines: [
          'Paste JavaScript, TypeScript, Python, SQL or JSON in a ``` fence: it will be parsed, measured and judged.',
        ],
      },
    ],
    method: METHOD,
  }
}

const REQUEST_WORDS = new Set(
  'write create build make implement function code script program python javascript typescript help need class method using use that which please snippet generate'.split(
    ' ',
  ),
)
