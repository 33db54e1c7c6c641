import { type Brief, extractTopic } from './brief.ts'
import { correctCode, type Defect, findDefects } from './defects.ts'
import type { Report, Section } from './report.ts'
import { SNIPPETS } from './snippets.ts'
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
  const defects = sources.map(findDefects)
  const corrected = sources.map((source, i) => correctCode(source, defects[i]!))
  const errors = analyses.flatMap((analysis) => analysis.errors)
  const functions = analyses.flatMap((analysis) => analysis.functions)
  const smells = analyses.flatMap((analysis, i) =>
    analysis.smells.filter(({ line }) => !defects[i]!.some((defect) => defect.line === line)),
  )
  const mostComplex = [...functions].sort((a, b) => b.complexity - a.complexity)[0]
  return {
    lane: 'coder',
    title: `Code review: ${sources.map((source) => source.dialect || source.language).join(', ')}`,
    summary: `${describeDefects(defects.flat())}${describeSummary(errors.length, functions.length, smells.length, mostComplex)}`,
    sections: [
      ...buildDefectSections(sources, defects, corrected),
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
      ...buildTestSection(functions),
    ],
    method: METHOD,
  }
}

function describeDefects(defects: readonly Defect[]): string {
  const [first] = defects
  if (!first) return ''
  const more = defects.length > 1 ? ` ${formatCount(defects.length - 1, 'more defect')} below.` : ''
  return `Line ${first.line}, ${first.name}: ${first.message}${more} `
}

function buildDefectSections(
  sources: readonly Source[],
  defects: readonly (readonly Defect[])[],
  corrected: readonly (string | undefined)[],
): Section[] {
  return sources.flatMap((source, i) => {
    const number = sources.length > 1 ? ` ${i + 1}` : ''
    if (defects[i]!.length === 0) return []
    const text = corrected[i]
    return [
      {
        heading: `Defects${number}`,
        lines: defects[i]!.map(({ line, name, message }) => `Line ${line}, ${name}: ${message}`),
      },
      ...(text === undefined
        ? []
        : [{ heading: `Corrected${number}`, code: { language: source.dialect || source.language, text } }]),
    ]
  })
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

function buildTestSection(functions: readonly FunctionInfo[]): Section[] {
  const testable = functions.filter((info) => /^[\w$]+$/.test(info.name) && info.name !== 'constructor').slice(0, 4)
  if (testable.length === 0) return []
  return [
    {
      heading: 'Tests to write',
      lines: testable.map(({ name, parameters, complexity }) => {
        const edges = parameters.map((parameter) => `\`${parameter.replace(/^[*.]+/, '')}\``).join(', ')
        return `\`${clip(name, 40)}\`: ${complexity > 1 ? `each of its ${complexity} paths` : 'its ordinary case'}${edges ? `, and ${edges} when empty, zero, missing and very large` : ''}.`
      }),
    },
  ]
}

/** For a task without code: a function that is asked for often, or what has to be known before one is written. */
function reportScaffold(brief: Brief): Report {
  const snippet = SNIPPETS.find(({ pattern }) => pattern.test(brief.task.slice(0, 2_000)))
  if (snippet && !/\b(?:rust|golang|java|ruby|php|c\+\+|c#|kotlin|swift|sql|bash)\b/i.test(brief.task)) {
    const isPython = /\bpython\b/i.test(brief.task)
    return {
      lane: 'coder',
      title: clip(capitalise(extractTopic(brief)), 70),
      summary: snippet.note,
      sections: [
        {
          heading: isPython ? 'Python' : 'TypeScript',
          code: { language: isPython ? 'python' : 'ts', text: isPython ? snippet.python : snippet.typescript },
        },
      ],
      method: METHOD,
    }
  }
  const words = extractContentWords(brief.instruction).slice(0, 6)
  return {
    lane: 'coder',
    title: `Before the code: ${clip(extractTopic(brief), 70)}`,
    summary: `There is no code in the task to read${words.length > 0 ? ` (${words.join(', ')})` : ''}, and without a model this lane does not write programs. Paste code and it is parsed, searched for defects and measured; for new code, these points decide the design.`,
    sections: [
      {
        heading: 'To settle first',
        lines: [
          'Input and output, with one real example of each.',
          'The result for nothing, for too much and for the wrong type.',
          'The size of the input, and how fast it must be.',
          'The failures that the caller sees, and those that are retried.',
        ],
      },
      {
        heading: 'Tests to begin with',
        lines: ['The ordinary example.', 'An empty input.', 'The largest input.', 'An input that must be refused.'],
      },
      {
        heading: 'For a review',
        lines: ['Paste JavaScript, TypeScript, Python, SQL or JSON in a ``` fence.'],
      },
    ],
    method: METHOD,
  }
}
