import { type ReactNode, type Ref, useEffect, useImperativeHandle, useRef, useState } from 'react'

/** A box that scrolls sideways; while there is something to scroll to, it can be reached by keyboard. */
export function ScrollBox({ label, ref, children }: { label: string; ref?: Ref<HTMLDivElement>; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null)
  const [isWide, setWide] = useState(false)
  useImperativeHandle(ref, () => box.current!)
  useEffect(() => {
    const element = box.current!
    const observer = new ResizeObserver(() => setWide(element.scrollWidth > element.clientWidth))
    observer.observe(element)
    for (const child of element.children) observer.observe(child)
    return () => observer.disconnect()
  }, [])
  return (
    <div
      className="scroll"
      ref={box}
      {...(isWide && { tabIndex: 0, role: 'group', 'aria-label': `${label}, scrolls` })}
    >
      {children}
    </div>
  )
}
