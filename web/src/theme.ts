import { useSyncExternalStore } from 'react'
import { openStorage } from './session.ts'

export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const STORAGE_KEY = 'countersign.theme'
const listeners = new Set<() => void>()

export const readTheme = (): Theme => themes.find((theme) => theme === openStorage()?.getItem(STORAGE_KEY)) ?? 'system'

export function selectTheme(theme: Theme) {
  if (theme === 'system') openStorage()?.removeItem(STORAGE_KEY)
  else openStorage()?.setItem(STORAGE_KEY, theme)
  applyTheme(theme)
  for (const listener of listeners) listener()
}

/** The style sheet takes its colours from `color-scheme`, which this attribute sets; without it the system decides. */
export function applyTheme(theme: Theme) {
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

export const useTheme = () => useSyncExternalStore(subscribe, readTheme, () => 'system' as const)

/** Whether the page is dark now, by choice or by the system. */
export const useDark = () =>
  useSyncExternalStore(subscribe, () => {
    const theme = readTheme()
    return theme === 'system' ? darkQuery().matches : theme === 'dark'
  })

const darkQuery = () => matchMedia('(prefers-color-scheme: dark)')

function subscribe(onChange: () => void) {
  const query = darkQuery()
  listeners.add(onChange)
  query.addEventListener('change', onChange)
  return () => {
    listeners.delete(onChange)
    query.removeEventListener('change', onChange)
  }
}
