import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { SecretNotice } from '../components/secret-notice.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, MutedText } from '../components/ui.tsx'
import { routeHref } from '../route.ts'
import { ChannelForm } from './channel-form.tsx'
import { ChannelPage } from './channel-page.tsx'
import { type Channel, describeTarget } from './channel-target.ts'

/** `#/account/channels` and `#/account/channels/<channel>`. */
export function ChannelsSection({ me, route }: SectionProps) {
  const [, id] = route.segments
  if (!mayControl(me))
    return (
      <Card title="Approval channels">
        <MutedText>
          This key lacks the scope <code>control</code>, so it sees no channels. Sign in with a key that has it.
        </MutedText>
      </Card>
    )
  return id ? <ChannelPage id={id} /> : <ChannelList />
}

function ChannelList() {
  const pagination = usePagination('')
  const [created, setCreated] = useState<{ name: string; secret: string }>()
  const channels = useQuery({
    queryKey: [ACCOUNT_KEY, 'channels', pagination.cursor],
    queryFn: () => api.get('/api/approval-channels', { query: { limit: 25, cursor: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <>
      {created && (
        <SecretNotice
          title="The signing secret"
          label="the signing secret"
          secret={created.secret}
          onDismiss={() => setCreated(undefined)}
        >
          The receiver of “{created.name}” needs it to verify what it gets. It is shown only here and only once.
        </SecretNotice>
      )}
      <Card title="Approval channels" note="How people hear that something waits for them">
        <QueryResult query={channels}>
          {({ channels: channelList, next_cursor }) => (
            <>
              <Table
                label="Approval channels"
                columns={columns}
                rows={channelList}
                rowKey={({ id }) => id}
                empty={
                  <>
                    There are no channels: approvals wait in the <a href={routeHref(['account', 'approvals'])}>inbox</a>{' '}
                    until somebody looks. Add one below.
                  </>
                }
              />
              <Pager pagination={pagination} next={next_cursor} />
            </>
          )}
        </QueryResult>
      </Card>
      <Card title="Add a channel">
        <ChannelForm onSecret={(name, secret) => setCreated({ name, secret })} />
      </Card>
    </>
  )
}

const columns: Column<Channel>[] = [
  {
    name: 'Name',
    render: ({ id, name }) => (
      <a href={routeHref(['account', 'channels', id])} className="wrap">
        {name}
      </a>
    ),
    wide: true,
  },
  { name: 'Type', render: ({ type }) => type },
  { name: 'Goes to', render: (channel) => <span className="wrap">{describeTarget(channel)}</span>, wide: true },
  {
    name: 'State',
    render: ({ is_active }) => <Badge tone={is_active ? 'success' : 'neutral'}>{is_active ? 'active' : 'off'}</Badge>,
  },
]
