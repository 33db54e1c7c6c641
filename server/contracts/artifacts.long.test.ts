import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { compileContracts, formatArtifact } from './compile.ts'

test('compiling the sources again gives the committed artifacts, byte for byte', () => {
  for (const artifact of compileContracts()) {
    const committedText = readFileSync(new URL(`${artifact.contractName}.json`, import.meta.url), 'utf8')
    expect(formatArtifact(artifact)).toBe(committedText)
  }
})
