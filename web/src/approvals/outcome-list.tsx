import { Badge } from '../components/ui.tsx'
import { routeHref } from '../route.ts'
import type { Outcome } from './decide.ts'

/** What became of each decision that was made on this page. */
export const OutcomeList = ({ outcomes, onClear }: { outcomes: Outcome[]; onClear: () => void }) => (
  <div className="outcomes" role="status" aria-label="Outcome of your decisions">
    {outcomes.length > 0 && (
      <>
        <ul className="plain-list">
          {outcomes.map(({ id, title, decision, problem }) => (
            <li key={id}>
              <Badge tone={problem === null ? 'success' : 'error'}>
                {problem !== null ? 'not decided' : decision === 'approve' ? 'approved' : 'rejected'}
              </Badge>{' '}
              <a href={routeHref(['account', 'approvals', id])}>{title}</a>
              {problem !== null && <span className="error"> {problem}</span>}
            </li>
          ))}
        </ul>
        <button type="button" className="secondary copy" onClick={onClear}>
          Clear
        </button>
      </>
    )}
  </div>
)
