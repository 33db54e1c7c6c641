import type { ReactNode } from 'react'
import { CopyButton } from './copy-button.tsx'
import { Card } from './ui.tsx'

/** A secret that the service shows once. Keep it in the state of one component, never in the query cache. */
export const SecretNotice = ({
  title,
  label,
  secret,
  children,
  onDismiss,
}: {
  title: string
  /** What it is, for the copy button and for screen readers. */
  label: string
  secret: string
  children: ReactNode
  onDismiss: () => void
}) => (
  <Card title={title}>
    <div role="status">
      <p>{children}</p>
      <p className="copy-line">
        <code className="secret">{secret}</code>
        <CopyButton text={secret} label={label} />
      </p>
    </div>
    <button type="button" className="secondary" onClick={onDismiss}>
      I have stored it
    </button>
  </Card>
)
