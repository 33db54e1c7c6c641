import { expect, test } from 'vitest'
import { highlight } from '../../src/modules/documentation/highlight.ts'
import { renderMarkdown } from '../../src/modules/documentation/markdown.ts'

const render = (markdown: string) =>
  renderMarkdown(markdown, {
    resolve: (target) => (target.startsWith('unserved') ? undefined : target),
    renderCode: highlight,
  })
const bodyOf = (markdown: string) => render(markdown).body.markup

test.each([
  '<script>alert(1)</script>',
  'text <img src=x onerror=alert(1)> text',
  '# <script>alert(1)</script>',
  '- <b onclick="x">',
  '| <i>a</i> |\n|---|\n| <script>b</script> |',
  '```html\n<script>alert(1)</script>\n```',
  '```json\n{"<script>": "<script>"}\n```',
  '`<script>`',
  '**<script>**',
  '[<script>](https://example.com)',
  '![" onerror="alert(1)](https://example.com/x.svg)',
  '[x](https://example.com/"onmouseover="alert(1))',
  '> <script>',
])('markup in a guide is shown as text: %s', (markdown) => {
  const { markup } = render(markdown).body
  expect(markup).not.toMatch(/<(script|img src=x|b onclick|i>)/i)
  const withoutValues = markup.replaceAll(/="[^"]*"/g, '')
  expect(withoutValues).not.toMatch(/<[^>]*\son\w+/i)
})

test.each(['javascript:alert`1`', 'JavaScript:x', ' javascript:alert(1)', 'data:text/html,x', 'vbscript:x'])(
  'a link that could run a script is no link: %s',
  (target) => {
    expect(bodyOf(`[click](${target}) ![click](${target})`)).not.toMatch(/<(a|img)/)
  },
)

test('a link to what is not served is text', () => {
  expect(bodyOf('see [decision 22](unserved/0022.md).')).toBe('<p>see decision 22.</p>\n')
})

test('headings have the ids of code hosts, unique on the page, and their text is found by section', () => {
  const { title, sections } = render(
    '# Money\n\nIntro.\n\n## Pre-authorise, pay, close\n\nOne `two`.\n\n## A\n\n## A\n',
  )
  expect(title).toBe('Money')
  expect(sections.map(({ id, text }) => [id, text])).toEqual([
    ['money', 'Intro.'],
    ['pre-authorise-pay-close', 'One two.'],
    ['a', ''],
    ['a-1', ''],
  ])
})

test('lists, nested ones too, tables with pipes, quotes, code and comments', () => {
  expect(bodyOf('- one\n- two\n  - inner\n- **three**\n')).toMatch(
    /<ul>\n<li>one<\/li>\n<li><p>two<\/p>\n<ul>\n<li>inner<\/li>\n<\/ul>\n<\/li>\n<li><strong>three<\/strong><\/li>\n<\/ul>/,
  )
  expect(bodyOf('1. one\n2. two\n')).toBe('<ol>\n<li>one</li>\n<li>two</li>\n</ol>\n')
  expect(bodyOf('| a | b |\n|---|---|\n| `x \\| y` | z |\n')).toMatch(/<td><code>x \| y<\/code><\/td><td>z<\/td>/)
  expect(bodyOf('> quoted\n> text')).toBe('<blockquote><p>quoted\ntext</p>\n</blockquote>\n')
  expect(bodyOf('a\n<!-- hidden -->\nb')).toBe('<p>a</p>\n<p>b</p>\n')
  expect(bodyOf('```sh\na  *b*\n\nc\n```')).toContain('<code>a  *b*\n\nc</code>')
  expect(bodyOf('`` a ` b ``')).toContain('<code> a ` b </code>')
  expect(bodyOf('2 * 3 * 4 and snake_case_name')).toBe('<p>2 * 3 * 4 and snake_case_name</p>\n')
})

test.each(['**', '**a', '[', '[[](', '![', '` ', '*a', '\\', '- ', '  - ', '> > ', '\n# ', '\n|', '\n> ', '\n```\n'])(
  'text of nothing but %j takes time in proportion to its length',
  (unit) => {
    const before = process.cpuUsage()
    bodyOf(unit.repeat(50_000 / unit.length))
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(5_000)
  },
)
