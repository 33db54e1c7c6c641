import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { SecretNotice } from '../components/secret-notice.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, DescriptionList, Id, MutedText, Timestamp } from '../components/ui.tsx'
import { useNow } from '../now.ts'
import { routeHref } from '../route.ts'
import { RevokeKeyButton, RotateKeyButton } from './key-actions.tsx'
import { NewKeyForm } from './key-form.tsx'
import { type ApiKey, describeKeyState } from './key-state.ts'

export function KeysSection(props: SectionProps) {
  return props.me.scopes.includes('keys') ? <Keys {...props} /> : <OwnKey me={props.me} />
}

function Keys({ me }: SectionProps) {
  const now = useNow()
  const pagination = usePagination('')
  const [newKey, setNewKey] = useState<{ name: string; secret: string }>()
  const keys = useQuery({
    queryKey: [ACCOUNT_KEY, 'keys', pagination.cursor],
    queryFn: () => api.get('/api/keys', { query: { limit: 25, cursor: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  const actions: Column<ApiKey> = {
    name: 'Action',
    render: (key) =>
      describeKeyState(key, now).isLive && (
        <div className="row">
          {key.replaced_by === null && (
            <RotateKeyButton apiKey={key} me={me} onNewKey={(secret) => setNewKey({ name: key.name, secret })} />
          )}
          <RevokeKeyButton apiKey={key} me={me} />
        </div>
      ),
  }
  return (
    <>
      {newKey && (
        <SecretNotice
          title="The new key"
          label="the new key"
          secret={newKey.secret}
          onDismiss={() => setNewKey(undefined)}
        >
          Store the key “{newKey.name}” now, in a secret store: it is shown only here and only once.
        </SecretNotice>
      )}
      <Card title="Keys" note="A key itself is never shown again">
        <QueryResult query={keys}>
          {({ keys: keyList, next_cursor }) => (
            <>
              <Table
                label="Keys"
                columns={[...createColumns(now, me.key_id), actions]}
                rows={keyList}
                rowKey={({ key_id }) => key_id}
                empty="There are no keys. Create one below."
              />
              <Pager pagination={pagination} next={next_cursor} />
            </>
          )}
        </QueryResult>
      </Card>
      <NewKeyForm me={me} onNewKey={(name, secret) => setNewKey({ name, secret })} />
    </>
  )
}

const createColumns = (now: number, ownKeyId: string): Column<ApiKey>[] => [
  {
    name: 'Name',
    render: ({ key_id, name, key_prefix }) => (
      <>
        <span className="wrap">{name}</span> {key_id === ownKeyId && <Badge tone="neutral">this session</Badge>}
        <br />
        <code>{key_prefix}…</code>
      </>
    ),
    wide: true,
  },
  {
    name: 'Scopes and bonds',
    render: (key) => (
      <>
        {key.scopes.join(', ')}
        <br />
        <Bonds bonds={key} />
      </>
    ),
    wide: true,
  },
  {
    name: 'Last use',
    render: ({ last_used_at }) => (last_used_at ? <Timestamp at={last_used_at} /> : 'never'),
    wide: true,
  },
  {
    name: 'State',
    render: (key) => {
      const { tone, label } = describeKeyState(key, now)
      return (
        <>
          <Badge tone={tone}>{label}</Badge>
          {key.revoked_at === null && key.expires_at !== null && (
            <>
              <br />
              until <Timestamp at={key.expires_at} />
            </>
          )}
        </>
      )
    },
    wide: true,
  },
]

function Bonds({ bonds: { spender, team, mandate_ids } }: { bonds: Pick<ApiKey, 'spender' | 'team' | 'mandate_ids'> }) {
  if (spender === null && team === null && mandate_ids === null) return <span className="muted">spends as itself</span>
  return (
    <>
      {spender !== null && <span className="wrap">spends as {spender} </span>}
      {team !== null && <span className="wrap">for team {team} </span>}
      {mandate_ids?.map((id) => (
        <span key={id}>
          {' '}
          <a href={routeHref(['account', 'mandates', id])}>
            <Id value={id} />
          </a>
        </span>
      ))}
    </>
  )
}

/** Without the scope the service shows no other key. */
const OwnKey = ({ me }: Pick<SectionProps, 'me'>) => (
  <Card title="Your key">
    <DescriptionList
      items={[
        ['Key', <Id key="id" value={me.key_id} full />],
        ['Scopes', me.scopes.join(', ')],
        ['Bonds', <Bonds key="bonds" bonds={me} />],
      ]}
    />
    <MutedText>
      This key lacks the scope <code>keys</code>, so it sees no other key and cannot make, rotate or revoke one. Sign in
      with a key that has it.
    </MutedText>
  </Card>
)
