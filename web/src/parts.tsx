import type { ReactNode } from 'react'

export const usdc = (amount: number) => `${amount.toLocaleString('en-US', { maximumFractionDigits: 6 })} USDC`

export const time = (iso: string) => iso.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')

export const Card = ({ title, children }: { title: string; children: ReactNode }) => (
  <section className="card">
    <h2>{title}</h2>
    {children}
  </section>
)

export const Mark = ({ good, children }: { good: boolean | 'neutral'; children: ReactNode }) => (
  <span className={`mark ${good === true ? 'good' : good === false ? 'bad' : ''}`}>{children}</span>
)

type Loading<T> = { data: T | undefined; error: Error | null; isPending: boolean }

/** One place that says what is loading, what failed and what is empty. */
export function Loaded<T>({ query, children }: { query: Loading<T>; children: (data: T) => ReactNode }) {
  if (query.data !== undefined) return <>{children(query.data)}</>
  if (query.error) return <p className="bad">{query.error.message}</p>
  return <p className="soft">Loading…</p>
}

export function Table({
  head,
  rows,
  empty,
}: {
  head: string[]
  rows: { key: string; cells: ReactNode[] }[]
  empty: string
}) {
  if (rows.length === 0) return <p className="soft">{empty}</p>
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            {head.map((name) => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells }) => (
            <tr key={key}>
              {cells.map((cell, index) => (
                <td key={head[index]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
