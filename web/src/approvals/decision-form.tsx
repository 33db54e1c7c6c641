import { type Ref, useId, useImperativeHandle, useRef, useState } from 'react'
import { useAction } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { ErrorMessage } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { decideAll, type Outcome } from './decide.ts'
import { confirmReasons, type Decision, type InboxItem } from './inbox-item.ts'

export type DecisionControls = { approve(): void; startReject(): void }

const MAX_REASON = 500

/** Approves or rejects one or several. What is unusual is asked about once more, and no rejection goes without a reason. */
export function DecisionForm({
  items,
  onOutcome,
  onLeave,
  controls,
}: {
  items: InboxItem[]
  onOutcome: (outcome: Outcome) => void
  /** Escape in the field of the reason. */
  onLeave?: () => void
  controls?: Ref<DecisionControls>
}) {
  const [reason, setReason] = useState('')
  const [isRejecting, setRejecting] = useState(false)
  const [isReasonMissing, setReasonMissing] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  const approveBox = useRef<HTMLSpanElement>(null)
  const ids = { reason: useId(), hint: useId() }
  const decide = useAction((decision: Decision) =>
    decideAll(items, decision, reason, onOutcome).then(() => setReason('')),
  )
  const startReject = () => {
    setRejecting(true)
    input.current?.focus()
  }
  const reject = () => {
    const isMissing = reason.trim() === ''
    setReasonMissing(isMissing)
    if (isMissing) startReject()
    else decide.mutate('reject')
  }
  useImperativeHandle(controls, () => ({
    approve: () => approveBox.current?.querySelector('button')?.click(),
    startReject,
  }))
  const unusual = items.filter((item) => confirmReasons(item).length > 0)
  const many = items.length > 1 ? ` ${items.length}` : ''
  return (
    <form
      className="filters decision-form"
      aria-label={many ? 'Decide about the selected' : 'Decide'}
      onSubmit={(event) => {
        event.preventDefault()
        if (isRejecting) reject()
      }}
    >
      <div className="field">
        <label htmlFor={ids.reason}>{isRejecting ? 'Reason to reject' : 'Reason'}</label>
        <input
          id={ids.reason}
          ref={input}
          value={reason}
          maxLength={MAX_REASON}
          aria-describedby={ids.hint}
          aria-invalid={isReasonMissing || undefined}
          onChange={(event) => {
            setReason(event.target.value)
            setReasonMissing(false)
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return
            setRejecting(false)
            setReasonMissing(false)
            event.currentTarget.blur()
            onLeave?.()
          }}
        />
      </div>
      <span ref={approveBox}>
        {unusual.length > 0 || many ? (
          <ConfirmButton
            className=""
            title={many ? `Approve these${many}?` : `Approve ${formatUsdc(items[0]!.amountUsdc)}?`}
            text={<ApprovalSummary items={items} />}
            confirmLabel={`Approve${many}`}
            disabled={decide.isPending}
            action={() => decide.mutateAsync('approve')}
          >
            Approve{many}
          </ConfirmButton>
        ) : (
          <button type="button" disabled={decide.isPending} onClick={() => decide.mutate('approve')}>
            Approve
          </button>
        )}
      </span>
      <button type="button" className="danger" disabled={decide.isPending} onClick={reject}>
        Reject{many}
      </button>
      <p className="muted decision-hint" id={ids.hint}>
        {isRejecting
          ? 'Enter rejects, Escape leaves.'
          : 'Needed to reject. It is recorded with the decision, and those who asked can read it.'}
      </p>
      {isReasonMissing && <ErrorMessage>Say why it is rejected.</ErrorMessage>}
    </form>
  )
}

/** What is approved, and why each may be worth a second look. */
const ApprovalSummary = ({ items }: { items: InboxItem[] }) => (
  <ul className="approval-summary">
    {items.map((item) => (
      <li key={item.id}>
        {item.title}, {formatUsdc(item.amountUsdc)}, by {item.spender}
        {confirmReasons(item).map((text) => (
          <span key={text} className="warning-text">
            {' '}
            {text}
          </span>
        ))}
      </li>
    ))}
  </ul>
)
