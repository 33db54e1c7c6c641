import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { Card, MutedText } from '../components/ui.tsx'
import { routeHref } from '../route.ts'
import { EditPolicyPage, NewPolicyPage } from './policy-editor-page.tsx'
import { PolicyList } from './policy-list.tsx'
import { PolicyPage } from './policy-page.tsx'

/** `policies`, `policies/new`, `policies/<id>` and `policies/<id>/edit`. */
export function PoliciesSection({ me, route }: SectionProps) {
  const [, id, view] = route.segments
  if (id === undefined) return <PolicyList me={me} />
  const isEditor = id === 'new' || view === 'edit'
  if (isEditor && !mayControl(me))
    return (
      <Card title="Policies">
        <MutedText>
          This API key can view but not change policies: it has no control scope.{' '}
          <a href={routeHref(['account', 'policies'])}>All policies</a>
        </MutedText>
      </Card>
    )
  if (id === 'new') return <NewPolicyPage />
  return isEditor ? (
    <EditPolicyPage key={`${id} ${route.query}`} id={id} query={route.query} />
  ) : (
    <PolicyPage me={me} id={id} query={route.query} />
  )
}
