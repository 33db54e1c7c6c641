import { selectTheme, type Theme, themes, useTheme } from '../theme.ts'

const labels: Record<Theme, string> = { system: 'System theme', light: 'Light', dark: 'Dark' }

export function ThemeSelect() {
  const theme = useTheme()
  return (
    <select
      className="theme-select"
      aria-label="Theme"
      value={theme}
      onChange={(event) => selectTheme(event.target.value as Theme)}
    >
      {themes.map((name) => (
        <option key={name} value={name}>
          {labels[name]}
        </option>
      ))}
    </select>
  )
}
