import { type ReactNode, useId, useRef } from 'react'
import { useAction } from './action-button.tsx'
import { ErrorMessage } from './ui.tsx'

/** A button for what cannot be undone: it says in a dialog what will happen, and acts on the second click. */
export function ConfirmButton({
  action,
  title,
  text,
  confirmLabel,
  children,
  className = 'danger',
  disabled = false,
}: {
  action: () => Promise<unknown>
  title: string
  /** What happens then, or what is asked before, such as a reason. */
  text: ReactNode
  confirmLabel: string
  children: ReactNode
  className?: string
  disabled?: boolean
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  const mutation = useAction<void>(action)
  const close = () => dialog.current?.close()
  return (
    <>
      <button
        type="button"
        className={className}
        disabled={disabled}
        onClick={() => {
          mutation.reset()
          dialog.current?.showModal()
        }}
      >
        {children}
      </button>
      <dialog ref={dialog} aria-labelledby={titleId}>
        <h2 id={titleId}>{title}</h2>
        <div>{text}</div>
        {mutation.error && <ErrorMessage>{mutation.error.message}</ErrorMessage>}
        <div className="row dialog-buttons">
          <button type="button" className="secondary" onClick={close}>
            Cancel
          </button>
          <button
            type="button"
            className={className}
            disabled={mutation.isPending}
            onClick={() => mutation.mutate(undefined, { onSuccess: close })}
          >
            {confirmLabel}
          </button>
        </div>
      </dialog>
    </>
  )
}
