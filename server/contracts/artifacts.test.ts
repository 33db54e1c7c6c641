import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Artifact, CONTRACTS } from './compile.ts'

const readText = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')

test.each(CONTRACTS)('the committed artifact of %s was compiled from the source beside it', (name) => {
  const artifact = JSON.parse(readText(`${name}.json`)) as Artifact
  const source = createHash('sha256')
    .update(readText(`${name}.sol`))
    .digest('hex')
  expect(artifact.sourceHash).toBe(`sha256:${source}`)
  expect(artifact.compiler).toMatch(/^0\.8\.37\+/)
  expect(artifact.deployedBytecode).toMatch(/^0x60[0-9a-f]{500,}$/)
})
