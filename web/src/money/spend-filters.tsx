import { useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Field, FilterForm, Select } from '../components/form-fields.tsx'
import { navigate, routeHref } from '../route.ts'
import { groupings } from './spend-comparison.ts'
import type { SpendQuestion } from './spend-question.ts'

const comparisons: [value: string, name: string][] = [
  ['previous', 'the period before'],
  ['other', 'another period'],
  ['none', 'nothing'],
]

export function SpendFilters({ question, query }: { question: SpendQuestion; query: URLSearchParams }) {
  const { grouping, tag, now, before } = question
  const compare = comparisons.find(([value]) => value === query.get('compare'))?.[0] ?? 'previous'
  // The names of tags that were spent under, as a help while typing.
  const analytics = useQuery({
    queryKey: [ACCOUNT_KEY, 'analytics', '90d'],
    queryFn: () => api.get('/api/analytics', { query: { window: '90d' } }),
    enabled: grouping === 'tag',
  })
  const tagNames = [...new Set((analytics.data?.by_tag ?? []).map((row) => row.tag))]
  const apply = (values: Record<string, string>) => navigate(routeHref(['account', 'spend'], values))
  const date = (label: string, name: string, value: string) => (
    <Field label={label}>{(id) => <input id={id} name={name} type="date" defaultValue={value} />}</Field>
  )
  return (
    <FilterForm onApply={apply} hasButtons>
      <Select label="Group by" name="group" value={grouping} options={groupings} />
      {grouping === 'tag' && (
        <Field label="Tag">
          {(id) => (
            <>
              <input id={id} name="tag" defaultValue={tag} maxLength={64} list={`${id}-names`} />
              <datalist id={`${id}-names`}>
                {tagNames.map((name) => (
                  <option key={name} value={name} />
                ))}
              </datalist>
            </>
          )}
        </Field>
      )}
      {date('From', 'from', now.from)}
      {date('To', 'to', now.to)}
      <Field label="Compare with">
        {(id) => (
          <select id={id} name="compare" defaultValue={compare}>
            {comparisons.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      {compare === 'other' && (
        <>
          {date('Other from', 'from2', before?.from ?? '')}
          {date('Other to', 'to2', before?.to ?? '')}
        </>
      )}
    </FilterForm>
  )
}
