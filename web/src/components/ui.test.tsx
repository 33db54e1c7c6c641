import { expect, test } from 'vitest'
import { renderHtml, renderText } from '../../test/render.tsx'
import { Table } from './table.tsx'
import { Badge, DescriptionList, ExternalLink, Id } from './ui.tsx'

test('only https links from data become links', () => {
  expect(renderHtml(<ExternalLink href="https://example.com/report" />)).toMatch(/^<a href="https:[^>]*noopener/)
  for (const href of ['http://example.com', 'javascript:alert(1)', 'data:text/html,x'])
    expect(renderHtml(<ExternalLink href={href} />)).not.toContain('<a')
})

test('a long id is shortened on screen but complete in the document', () => {
  const id = 'rcpt_0123456789abcdef0123456789abcdef'
  const html = renderHtml(<Id value={id} />)
  expect(html).toContain('<span class="id-tail">89abcdef</span>')
  expect(html.replace(/<[^>]+>/g, '')).toBe(id)
  expect(renderHtml(<Id value={id} full />)).not.toContain('id-tail')
  expect(renderHtml(<Id value="short" />)).not.toContain('id-tail')
})

test('a description list leaves out entries without a value, but not zero', () => {
  const text = renderText(
    <DescriptionList
      items={[
        ['Null', null],
        ['Undefined', undefined],
        ['Empty', ''],
        ['Zero', 0],
        ['Text', 'shown'],
      ]}
    />,
  )
  expect(text).toBe('Zero 0 Text shown')
})

test('a badge repeats its tone as a symbol that screen readers skip', () => {
  expect(renderHtml(<Badge tone="error">failed</Badge>)).toContain('aria-hidden="true">✕<')
  expect(renderHtml(<Badge tone="neutral">off</Badge>)).not.toContain('aria-hidden')
})

test('a table without rows shows its empty text, and cells name their column for narrow screens', () => {
  const columns = [{ name: 'Runs', render: (row: { runs: number }) => row.runs, numeric: true }]
  const render = (rows: { runs: number }[]) =>
    renderHtml(<Table label="Runs" columns={columns} rows={rows} rowKey={() => 'a'} empty="No runs yet." />)
  expect(render([])).toContain('No runs yet.')
  expect(render([])).not.toContain('<table')
  expect(render([{ runs: 3 }])).toContain('<td data-label="Runs" class="numeric">3</td>')
})
