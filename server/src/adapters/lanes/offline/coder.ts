import { type Brief, topicOf } from './brief.ts'
import type { Report, Section } from './report.ts'
import { type FunctionFact, type Reading, type Source, sourcesOf, tangleOf } from './source.ts'
import { readJavaScript } from './source-javascript.ts'
import { readJson } from './source-json.ts'
import { readPython } from './source-python.ts'
import { readSql } from './source-sql.ts'
import { capitalise, clip, contentWordsOf, counted } from './text.ts'

const METHOD =
  'Offline coder: real parsers and fixed rules over the code in your task; it reads code, it does not run it, and no language model is used.'

const NOT_PARSED = 'Not parsed.'

/** Parses the code in the task: syntax errors, complexity, smells, and a test skeleton for what it found. */
export async function review(brief: Brief): Promise<Report> {
  const sources = sourcesOf(brief)
  if (sources.length === 0) return scaffold(brief)
  const readings: Reading[] = []
  for (const source of sources) readings.push(await read(source))
  const errors = readings.flatMap((reading) => reading.errors)
  const functions = readings.flatMap((reading) => reading.functions)
  const smells = readings.flatMap((reading) => reading.smells)
  const worst = [...functions].sort((a, b) => b.complexity - a.complexity)[0]
  return {
    lane: 'coder',
    title: `Code review: ${sources.map((source) => source.dialect || source.language).join(', ')}`,
    summary: summarise(errors.length, functions.length, smells.length, worst),
    sections: [
      ...sources.map((source, at) => sourceSection(source, readings[at]!, sources.length > 1 ? ` ${at + 1}` : '')),
      ...complexitySection(functions),
      {
        heading: 'Smells',
        lines:
          smells.length > 0
            ? smells.slice(0, 20).map((smell) => `Line ${smell.line}: ${smell.message}`)
            : errors.length > 0
              ? ['Not judged where the code could not be read.']
              : ['None of the rules fired.'],
      },
      ...testSection(sources, functions),
    ],
    method: METHOD,
  }
}

/** Reads one source. What no parser here knows is counted, not guessed. */
async function read(source: Source): Promise<Reading> {
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
  const tangle = source.language === 'json' ? undefined : tangleOf(source.text)
  if (tangle) {
    const message = `${tangle} the code is not parsed here, and hardly readable anywhere.`
    return { errors: [], functions: [], smells: [{ line: 1, message }], facts: [NOT_PARSED] }
  }
  if (source.language === 'javascript') return readJavaScript(source.text, source.dialect)
  if (source.language === 'python') return readPython(source.text)
  if (source.language === 'sql') return readSql(source.text)
  return readJson(source.text)
}

function summarise(errors: number, functions: number, smells: number, worst: FunctionFact | undefined): string {
  const syntax =
    errors === 0 ? 'The code parses.' : `${counted(errors, 'syntax error')}: fix ${errors === 1 ? 'it' : 'them'} first.`
  const complexity = worst
    ? ` ${counted(functions, 'function')}; the most complex is \`${worst.name}\` with ${counted(worst.complexity, 'path')}.`
    : ''
  return `${syntax}${complexity} ${counted(smells, 'smell')} found.`
}

function sourceSection(source: Source, reading: Reading, number: string): Section {
  const lines = source.text.split('\n')
  return {
    heading: `Syntax${number}`,
    lines: [
      ...reading.facts,
      ...reading.errors
        .slice(0, 10)
        .map(
          (error) =>
            `Line ${error.line}, column ${error.column}: ${error.message}. \`${clip((lines[error.line - 1] ?? '').trim(), 80).replaceAll('`', "'")}\``,
        ),
      ...(reading.errors.length === 0 && reading.facts[0] !== NOT_PARSED && source.language !== 'other'
        ? ['No syntax errors.']
        : []),
    ],
  }
}

function complexitySection(functions: readonly FunctionFact[]): Section[] {
  if (functions.length === 0) return []
  const verdict = (fact: FunctionFact) =>
    fact.complexity > 10
      ? 'split it: too many paths to test'
      : fact.depth > 3
        ? 'flatten it: nested too deep'
        : fact.lines > 60
          ? 'shorten it'
          : fact.parameters.length > 5
            ? 'pass one object instead'
            : 'fine'
  const rows = functions
    .slice(0, 20)
    .map((fact) => [
      `\`${clip(fact.name, 40)}\``,
      String(fact.line),
      String(fact.lines),
      String(fact.parameters.length),
      String(fact.complexity),
      String(fact.depth),
      verdict(fact),
    ])
  return [
    {
      heading: 'Complexity',
      table: { columns: ['function', 'line', 'lines', 'parameters', 'paths', 'depth', 'verdict'], rows },
    },
  ]
}

function testSection(sources: readonly Source[], functions: readonly FunctionFact[]): Section[] {
  const named = functions.filter((fact) => /^[\w$]+$/.test(fact.name) && fact.name !== 'constructor').slice(0, 4)
  if (named.length === 0) return []
  const python = sources.some((source) => source.language === 'python')
  const text = named.map((fact) => (python ? pytest(fact) : vitest(fact))).join('\n\n')
  return [
    {
      heading: 'Test skeleton',
      prose: 'One ordinary case, one edge for each parameter, one failure. Fill in the values you expect.',
      code: { language: python ? 'python' : 'ts', text },
    },
  ]
}

const pytest = (fact: FunctionFact) =>
  [
    `def test_${fact.name}_ordinary_case():`,
    `    result = ${fact.name}(${fact.parameters.map((parameter) => `${parameter.replace(/^\*+/, '')}=...`).join(', ')})`,
    '    assert result == ...',
    ...fact.parameters.map(
      (parameter) =>
        `\n\ndef test_${fact.name}_edge_of_${parameter.replace(/^\*+/, '')}():\n    # empty, zero, None, very large\n    assert ${fact.name}(...) == ...`,
    ),
  ].join('\n')

/** It parses as it stands, whatever is filled in later. */
function vitest(fact: FunctionFact): string {
  const names = fact.parameters.map((parameter) => parameter.replace('...', ''))
  const call = `${fact.async ? 'await ' : ''}${fact.name}(${names.join(', ')})`
  const opens = fact.async ? 'async () => {' : '() => {'
  return [
    `describe('${fact.name}', () => {`,
    `  test('does its ordinary work', ${opens}`,
    ...(names.length > 0 ? [`    const [${names.join(', ')}] = [/* your values */]`] : []),
    `    expect(${call}).toEqual(/* expected */)\n  })`,
    ...names.map((name) => `  test.todo('holds at the edge of ${name}: empty, zero, undefined, very large')`),
    ...(fact.complexity > 3 ? [`  test.todo('takes each of its ${fact.complexity} paths')`] : []),
    '})',
  ].join('\n')
}

/** No code to read: a signature, the cases to settle first, and a test list, from the words of the request. */
function scaffold(brief: Brief): Report {
  const words = contentWordsOf(brief.instruction)
    .filter((word) => /^[a-z][a-z0-9]*$/.test(word) && !ASKING.has(word))
    .slice(0, 3)
  const python = /\bpython|django|flask|pandas\b/i.test(brief.task)
  const name = python
    ? words.join('_') || 'solve'
    : words.map((word, at) => (at === 0 ? word : capitalise(word))).join('') || 'solve'
  const text = python
    ? `def ${name}(value):\n    """${clip(topicOf(brief), 70)}"""\n    raise NotImplementedError\n\n\ndef test_${name}():\n    assert ${name}(...) == ...`
    : `/** ${clip(topicOf(brief), 70)} */\nexport function ${name}(input: unknown): unknown {\n  throw new Error('not written yet')\n}\n\ntest('${name} does its ordinary work', () => {\n  expect(${name}(/* input */)).toEqual(/* expected */)\n})`
  const sql = !python && /\bsql\b|\bquery\b.{0,40}\b(?:table|rows?|per|department|database)\b/i.test(brief.task)
  const query = `-- ${clip(topicOf(brief), 70)}\nselect [columns]\nfrom [table]\nwhere [condition]\ngroup by [what each row of the answer stands for]\norder by [columns];`
  return {
    lane: 'coder',
    title: `Start for: ${clip(topicOf(brief), 70)}`,
    summary:
      'There is no code in the task to read. Without a model this lane does not write programs; it gives you the frame and the questions that decide the design.',
    sections: [
      {
        heading: 'Frame',
        code: sql ? { language: 'sql', text: query } : { language: python ? 'python' : 'ts', text },
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

const ASKING = new Set(
  'write create build make implement function code script program python javascript typescript help need class method using use that which please snippet generate'.split(
    ' ',
  ),
)
