import type { ReactNode } from 'react'
import { time } from './format.ts'

export const Title = ({ children, aside }: { children: ReactNode; aside?: ReactNode }) => (
  <div className="title">
    <h1>{children}</h1>
    {aside}
  </div>
)

export const Card = ({ title, note, children }: { title: string; note?: ReactNode; children: ReactNode }) => (
  <section className="card" aria-label={title}>
    <div className="card-head">
      <h2>{title}</h2>
      {note && <div className="soft">{note}</div>}
    </div>
    {children}
  </section>
)

export type Tone = 'good' | 'bad' | 'warn' | 'plain'
const signs: Record<Tone, string> = { good: '✓', bad: '✕', warn: '!', plain: '' }

/** A state in a word; the sign says it again for those who see no colour. */
export const Mark = ({ tone, children }: { tone: Tone; children: ReactNode }) => (
  <span className={`mark ${tone}`}>
    {signs[tone] && (
      <span className="sign" aria-hidden="true">
        {signs[tone]}
      </span>
    )}
    {children}
  </span>
)

/** A long id keeps its end in sight, which tells two apart; the whole of it is there to be copied and searched. */
export const Id = ({ value, full = false }: { value: string; full?: boolean }) =>
  full || value.length <= 24 ? (
    <code className="id full">{value}</code>
  ) : (
    <code className="id" title={value}>
      <span className="id-head">{value.slice(0, -8)}</span>
      <span className="id-tail">{value.slice(-8)}</span>
    </code>
  )

export const When = ({ at }: { at: string }) => <time dateTime={at}>{time(at)}</time>

export const Soft = ({ children }: { children: ReactNode }) => <p className="soft">{children}</p>

export const Bad = ({ children }: { children: ReactNode }) => (
  <p className="bad" role="alert">
    {children}
  </p>
)

/** Names and values of one thing; what has no value is left out. */
export const Facts = ({ facts }: { facts: [name: string, value: ReactNode][] }) => (
  <dl className="facts">
    {facts
      .filter(([, value]) => value !== null && value !== undefined && value !== '')
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)

export const Figures = ({ figures }: { figures: { name: string; value: ReactNode; tone?: Tone }[] }) => (
  <dl className="figures">
    {figures.map(({ name, value, tone }) => (
      <div key={name} className={tone}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)

/** A link from data leads out only over https, and tells the target nothing. */
export const Outward = ({ href }: { href: string }) =>
  href.startsWith('https://') ? (
    <a href={href} rel="noopener noreferrer nofollow" target="_blank">
      {href}
    </a>
  ) : (
    <span>{href}</span>
  )
