import type { ReactNode } from 'react'
import { formatLocalTime, formatRelativeTime, formatTime } from '../format.ts'
import { useNow } from '../now.ts'

export const PageTitle = ({ children, aside }: { children: ReactNode; aside?: ReactNode }) => (
  <div className="page-title">
    <h1>{children}</h1>
    {aside}
  </div>
)

export const Card = ({ title, note, children }: { title: string; note?: ReactNode; children: ReactNode }) => (
  <section className="card" aria-label={title}>
    <div className="card-head">
      <h2>{title}</h2>
      {note && <div className="muted">{note}</div>}
    </div>
    {children}
  </section>
)

export type Tone = 'success' | 'error' | 'warning' | 'neutral'
const toneSymbols: Record<Tone, string> = { success: '✓', error: '✕', warning: '!', neutral: '' }

/** A short status; the symbol repeats the tone for readers who cannot see the colour. */
export const Badge = ({ tone, children }: { tone: Tone; children: ReactNode }) => (
  <span className={`badge ${tone}`}>
    {toneSymbols[tone] && (
      <span className="badge-symbol" aria-hidden="true">
        {toneSymbols[tone]}
      </span>
    )}
    {children}
  </span>
)

/** A long id is shortened before its last 8 characters, which tell ids apart; the full text can still be copied and searched. */
export const Id = ({ value, full = false }: { value: string; full?: boolean }) =>
  full || value.length <= 24 ? (
    <code className="id full">{value}</code>
  ) : (
    <code className="id" title={value}>
      <span className="id-head">{value.slice(0, -8)}</span>
      <span className="id-tail">{value.slice(-8)}</span>
    </code>
  )

/** The local time and how long ago that is; the exact time in UTC is its title. */
export const Timestamp = ({ at }: { at: string }) => {
  const now = useNow()
  return (
    <time dateTime={at} title={formatTime(at)}>
      {formatLocalTime(at)} <span className="relative-time">{formatRelativeTime(at, now)}</span>
    </time>
  )
}

export const MutedText = ({ children }: { children: ReactNode }) => <p className="muted">{children}</p>

export const ErrorMessage = ({ children }: { children: ReactNode }) => (
  <p className="error" role="alert">
    {children}
  </p>
)

/** Names and values of one object; entries without a value are left out. */
export const DescriptionList = ({ items }: { items: [name: string, value: ReactNode][] }) => (
  <dl className="description-list">
    {items
      .filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false)
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)

export const StatList = ({ stats }: { stats: { name: string; value: ReactNode; tone?: Tone }[] }) => (
  <dl className="stats">
    {stats.map(({ name, value, tone }) => (
      <div key={name} className={tone}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)

/** A link taken from data: only https URLs become links, and the target gets no referrer. */
export const ExternalLink = ({ href }: { href: string }) =>
  href.startsWith('https://') ? (
    <a href={href} rel="noopener noreferrer nofollow" target="_blank">
      {href}
    </a>
  ) : (
    <span>{href}</span>
  )

/** Text as it is, in a box that scrolls. */
export const TextBlock = ({ label, children }: { label: string; children: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
  <section className="text-block" aria-label={label} tabIndex={0}>
    <pre className="json">{children}</pre>
  </section>
)
