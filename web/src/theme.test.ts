import { beforeEach, expect, test, vi } from 'vitest'
import { stubStorage } from '../test/browser-stubs.ts'
import { readTheme, selectTheme } from './theme.ts'

const dataset: { theme?: string } = {}

beforeEach(() => {
  stubStorage()
  vi.stubGlobal('document', { documentElement: { dataset } })
})

test('a theme is kept and applied, and the system decides when none is chosen', () => {
  expect(readTheme()).toBe('system')
  selectTheme('dark')
  expect([readTheme(), dataset.theme]).toEqual(['dark', 'dark'])
  selectTheme('system')
  expect([readTheme(), dataset.theme]).toEqual(['system', undefined])
})

test('what is stored and is no theme counts as none', () => {
  stubStorage().set('countersign.theme', '"><script>')
  expect(readTheme()).toBe('system')
})
