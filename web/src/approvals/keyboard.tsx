import { useEffect, useRef } from 'react'

export const shortcuts = [
  ['j', 'Next'],
  ['k', 'Previous'],
  ['a', 'Approve'],
  ['r', 'Reject: write the reason, Enter confirms, Escape leaves'],
  ['x', 'Select, or no longer'],
  ['?', 'Show or hide these keys'],
] as const

export type ShortcutKey = (typeof shortcuts)[number][0]

/** Whether a key belongs to what has the focus, and not to the page. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement ||
    (target instanceof HTMLInputElement && target.type !== 'checkbox') ||
    target.closest('dialog') !== null)

/** Calls the action of a key that is pressed anywhere in the page, except while somebody types. */
export function useShortcuts(actions: Partial<Record<ShortcutKey, () => void>>): void {
  const current = useRef(actions)
  useEffect(() => {
    current.current = actions
  })
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTyping(event.target)) return
      const action = current.current[event.key as ShortcutKey]
      if (!action) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', onKeyDown)
    return () => removeEventListener('keydown', onKeyDown)
  }, [])
}

export const ShortcutList = () => (
  <dl className="shortcuts" aria-label="Keys">
    {shortcuts.map(([key, meaning]) => (
      <div key={key}>
        <dt>
          <kbd>{key}</kbd>
        </dt>
        <dd>{meaning}</dd>
      </div>
    ))}
  </dl>
)
