import { useState } from 'react'
import { readAmount, toInputText } from '../money-text.ts'

type InputProps = {
  id: string
  describedBy?: string | undefined
  value: unknown
  onChange: (value: unknown) => void
  placeholder?: string
  list?: string
  required?: boolean
}

/** A number as text. What is no number goes on as text, so that nothing typed is lost and the check can say what is wrong. */
export function NumberInput({
  id,
  describedBy,
  value,
  onChange,
  placeholder,
  required,
  read = readAmount,
}: InputProps & { read?: (text: string) => unknown }) {
  const [text, setText] = useState(() => toInputText(value))
  // Typing 1.50 must not become 1.5 at once; a value that came from elsewhere is shown.
  const shown = read(text) === value ? text : toInputText(value)
  return (
    <input
      id={id}
      aria-describedby={describedBy}
      inputMode="decimal"
      autoComplete="off"
      maxLength={20}
      required={required}
      placeholder={placeholder}
      value={shown}
      onChange={({ target }) => {
        setText(target.value)
        onChange(read(target.value))
      }}
    />
  )
}

export const readNumber = (text: string): number | string => {
  const trimmed = text.trim()
  return /^-?\d{1,15}(\.\d{1,9})?$/.test(trimmed) ? Number(trimmed) : trimmed
}

/** A list of texts, one in each line. */
export function LinesInput({
  id,
  describedBy,
  value,
  onChange,
  placeholder,
  readEntry = (entry) => entry,
}: InputProps & { readEntry?: (entry: string) => unknown }) {
  const toLines = (list: unknown) => (Array.isArray(list) ? list.map(toInputText).join('\n') : toInputText(list))
  const readLines = (text: string) =>
    text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
      .map(readEntry)
  const [text, setText] = useState(() => toLines(value))
  const shown = JSON.stringify(readLines(text)) === JSON.stringify(value) ? text : toLines(value)
  return (
    <textarea
      id={id}
      aria-describedby={describedBy}
      rows={Math.min(8, Math.max(2, shown.split('\n').length))}
      spellCheck={false}
      placeholder={placeholder}
      value={shown}
      onChange={({ target }) => {
        setText(target.value)
        onChange(readLines(target.value))
      }}
    />
  )
}
