import { useState } from 'react'
import { Field } from '../components/form-fields.tsx'

const HOUR = 3_600
const overlaps = [
  { seconds: 0, label: 'not at all: it ends now' },
  { seconds: HOUR, label: '1 hour' },
  { seconds: 24 * HOUR, label: '24 hours' },
  { seconds: 7 * 24 * HOUR, label: '7 days' },
]

/** How long the old key or secret stays valid beside the new one. */
export function useOverlap(label: string) {
  const [seconds, setSeconds] = useState(24 * HOUR)
  const select = (
    <Field label={label}>
      {(id) => (
        <select id={id} value={seconds} onChange={(event) => setSeconds(Number(event.target.value))}>
          {overlaps.map((overlap) => (
            <option key={overlap.seconds} value={overlap.seconds}>
              {overlap.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
  return { seconds, select }
}
