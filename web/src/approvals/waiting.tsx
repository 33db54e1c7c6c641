import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { ACCOUNT_KEY, api } from '../api.ts'
import { MutedText } from '../components/ui.tsx'
import { routeHref } from '../route.ts'

/** How many approvals and trades wait for a decision; undefined until it is known. */
export function useWaitingCount(): number | undefined {
  const { data } = useQuery({
    queryKey: [ACCOUNT_KEY, 'approvals', 'count'],
    queryFn: async () => {
      const { approvals_pending, brokerage_approvals_pending } = await api.get('/api/control-tower')
      return approvals_pending + brokerage_approvals_pending
    },
    // A hidden page must learn of a new one too: that is what the notification is for.
    refetchIntervalInBackground: true,
  })
  return data
}

/** `(2) Approvals · Countersign`, and without a number when nothing waits. */
export const addCount = (title: string, count: number): string => {
  const plain = title.replace(/^\(\d+\) /, '')
  return count === 0 ? plain : `(${count}) ${plain}`
}

/** Keeps the number of what waits in the title of the page, and tells a person who looks elsewhere of a new one. */
export function WaitingWatch() {
  const count = useWaitingCount()
  const seenCount = useRef<number>(undefined)
  useEffect(() => {
    if (count === undefined) return
    const update = () => {
      const title = addCount(document.title, count)
      if (title !== document.title) document.title = title
    }
    update()
    const titleObserver = new MutationObserver(update)
    titleObserver.observe(document.querySelector('title')!, { childList: true })
    return () => {
      titleObserver.disconnect()
      document.title = addCount(document.title, 0)
    }
  }, [count])
  useEffect(() => {
    if (count === undefined) return
    const isNew = seenCount.current !== undefined && count > seenCount.current
    seenCount.current = count
    if (isNew) notify(count)
  }, [count])
  return null
}

const isSupported = () => 'Notification' in globalThis

/** Says that something waits and nothing of what: others may see the screen. */
function notify(count: number) {
  if (!isSupported() || Notification.permission !== 'granted' || document.visibilityState !== 'hidden') return
  const notification = new Notification('Countersign', {
    body: count === 1 ? 'An approval waits for a decision.' : `${count} approvals wait for a decision.`,
    tag: 'countersign-approvals',
  })
  notification.onclick = () => {
    focus()
    location.hash = routeHref(['account', 'approvals'])
  }
}

export function NotificationSetting() {
  const [permission, setPermission] = useState(() => (isSupported() ? Notification.permission : undefined))
  if (permission === undefined) return null
  if (permission === 'granted') return <MutedText>This browser tells you when something new waits.</MutedText>
  if (permission === 'denied') return <MutedText>Notifications are blocked in the settings of this browser.</MutedText>
  return (
    <button
      type="button"
      className="secondary"
      onClick={() => void Notification.requestPermission().then((answer) => setPermission(answer))}
    >
      Notify me in this browser
    </button>
  )
}
