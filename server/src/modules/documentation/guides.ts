import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { highlight } from './highlight.ts'
import { plainText, type RenderedMarkdown, renderMarkdown } from './markdown.ts'

export type Guide = RenderedMarkdown & {
  name: string
  /** Path from the root of the repository. */
  file: string
  markdown: string
  /** Its first paragraph. */
  summary: string
}

/** The order in which a newcomer needs them; others follow by name. */
const ORDER = [
  'money',
  'governance',
  'routing',
  'proof',
  'webhooks',
  'agents',
  'sdk',
  'cli',
  'verifier',
  'markets',
  'operations',
]
const PACKAGE_GUIDES = [
  { name: 'sdk', file: 'sdk/README.md' },
  { name: 'cli', file: 'cli/README.md' },
  { name: 'verifier', file: 'proof/README.md' },
]

export const guidePath = (name: string) => `/docs/guides/${name}`

/** The guides and the README files of the packages, rendered with links between them. */
export function readGuides(root: string): Guide[] {
  const files = [
    ...readdirSafely(join(root, 'docs'))
      .filter((file) => file.endsWith('.md'))
      .map((file) => ({ name: file.slice(0, -'.md'.length), file: `docs/${file}` })),
    ...PACKAGE_GUIDES.filter(({ file }) => existsSync(join(root, file))),
  ]
  const images = new Set(listImages(root))
  const rank = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length)
  return files
    .map(({ name, file }) => {
      const markdown = readFileSync(join(root, file), 'utf8')
      const resolve = (target: string) => resolveTarget(target, file, files, images)
      const rendered = renderMarkdown(markdown, { resolve, renderCode: highlight })
      return { ...rendered, name, file, markdown, summary: firstParagraph(markdown) }
    })
    .sort((a, b) => rank(a.name) - rank(b.name) || a.name.localeCompare(b.name))
}

/** Charts that guides show, as paths below `docs/`. */
export const listImages = (root: string): string[] =>
  readdirSafely(join(root, 'docs'), { recursive: true }).filter((file) => file.endsWith('.svg'))

function resolveTarget(
  target: string,
  from: string,
  files: readonly { name: string; file: string }[],
  images: ReadonlySet<string>,
): string | undefined {
  if (target.startsWith('#') || /^(https?|mailto):/i.test(target)) return target
  const [path = '', fragment] = target.split('#')
  const file = posix.normalize(posix.join(posix.dirname(from), path))
  const guide = files.find((candidate) => candidate.file === file)
  if (guide) return `${guidePath(guide.name)}${fragment ? `#${fragment}` : ''}`
  const image = file.replace(/^docs\//, '')
  return images.has(image) ? guidePath(image) : undefined
}

const firstParagraph = (markdown: string) => {
  const blocks = markdown.split(/\n\s*\n/)
  const paragraph = blocks.find((block) => /^[\p{L}`*]/u.test(block.trim())) ?? ''
  return plainText(paragraph.replaceAll('\n', ' ').trim())
}

const readdirSafely = (folder: string, options: { recursive?: boolean } = {}): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { ...options, encoding: 'utf8' }).map((file) => file.replaceAll('\\', '/'))
    : []
