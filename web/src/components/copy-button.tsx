import { useEffect, useState } from 'react'

const FEEDBACK_MS = 2_000

/** Copies a text. `label` says to screen readers what is copied. */
export function CopyButton({ text, label, className = 'secondary copy' }: CopyButtonProps) {
  const [outcome, setOutcome] = useState<'copied' | 'failed'>()
  useEffect(() => {
    if (!outcome) return
    const timer = setTimeout(() => setOutcome(undefined), FEEDBACK_MS)
    return () => clearTimeout(timer)
  }, [outcome])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setOutcome('copied')
    } catch {
      // Denied, or a page without TLS.
      setOutcome('failed')
    }
  }
  return (
    <button type="button" className={className} aria-label={`Copy ${label}`} onClick={() => void copy()}>
      <span aria-live="polite">
        {outcome === 'copied' ? 'Copied ✓' : outcome === 'failed' ? 'Select and copy it' : 'Copy'}
      </span>
    </button>
  )
}

type CopyButtonProps = { text: string; label: string; className?: string }
