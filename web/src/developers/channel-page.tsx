import type { ApiResponse } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api, hasStatus } from '../api.ts'
import { ActionButton, useAction } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, DescriptionList, ErrorMessage, Id, MutedText, Timestamp, type Tone } from '../components/ui.tsx'
import { NO_VALUE } from '../format.ts'
import { navigate, routeHref } from '../route.ts'
import { type Channel, describeTarget } from './channel-target.ts'

type Message = ApiResponse<'/api/approval-channels/{id}/messages', 'get'>['messages'][number]

export function ChannelPage({ id }: { id: string }) {
  const channel = useQuery({
    queryKey: [ACCOUNT_KEY, 'channels', 'one', id],
    queryFn: () => api.get('/api/approval-channels/{id}', { path: { id } }),
  })
  if (hasStatus(channel.error, 404) && !channel.data)
    return (
      <Card title="Not found">
        <MutedText>
          There is no channel <Id value={id} full />. <a href={routeHref(['account', 'channels'])}>All channels</a>
        </MutedText>
      </Card>
    )
  return (
    <>
      <p>
        <a href={routeHref(['account', 'channels'])}>All channels</a>
      </p>
      <QueryResult query={channel}>
        {(current) => (
          <>
            <ChannelCard channel={current} />
            <MessagesCard id={id} channel={current} />
          </>
        )}
      </QueryResult>
    </>
  )
}

function ChannelCard({ channel }: { channel: Channel }) {
  const { id, is_active } = channel
  const path = { id }
  const test = useAction<void>(() => api.post('/api/approval-channels/{id}/test', { path, body: {} }))
  return (
    <Card
      title={channel.name}
      note={<Badge tone={is_active ? 'success' : 'neutral'}>{is_active ? 'active' : 'off'}</Badge>}
    >
      <DescriptionList
        items={[
          ['Type', channel.type],
          [
            'Goes to',
            <span key="target" className="wrap">
              {describeTarget(channel)}
            </span>,
          ],
          ['Added by', <Id key="by" value={channel.created_by} />],
          ['Added', <Timestamp key="at" at={channel.created_at} />],
        ]}
      />
      <div className="row">
        {is_active && (
          <button type="button" className="secondary" disabled={test.isPending} onClick={() => test.mutate()}>
            Send a test
          </button>
        )}
        <ActionButton
          className="secondary"
          action={() => api.patch('/api/approval-channels/{id}', { path, body: { is_active: !is_active } })}
        >
          {is_active ? 'Switch off' : 'Switch on'}
        </ActionButton>
        <ConfirmButton
          title={`Delete “${channel.name}”?`}
          text="Links that were sent through it stop working. It cannot be undone."
          confirmLabel="Delete channel"
          action={async () => {
            await api.delete('/api/approval-channels/{id}', { path })
            navigate(routeHref(['account', 'channels']))
          }}
        >
          Delete
        </ConfirmButton>
      </div>
      {test.error && <ErrorMessage>{test.error.message}</ErrorMessage>}
      <p role="status">{test.isSuccess && 'The test is on its way: the list below says whether it arrived.'}</p>
    </Card>
  )
}

function MessagesCard({ id, channel }: { id: string; channel: Channel }) {
  const pagination = usePagination(id)
  const messages = useQuery({
    queryKey: [ACCOUNT_KEY, 'channels', 'messages', id, pagination.cursor],
    queryFn: () =>
      api.get('/api/approval-channels/{id}/messages', {
        path: { id },
        query: { limit: 25, cursor: pagination.cursor },
      }),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.data?.messages.some((message) => message.state === 'pending') ? 1_500 : 15_000,
  })
  return (
    <Card title="Messages" note="Newest first">
      <QueryResult query={messages}>
        {({ messages: messageList, next_cursor }) => (
          <>
            <Table
              label="Messages"
              columns={createColumns(channel)}
              rows={messageList}
              rowKey={({ id: messageId }) => messageId}
              empty="No messages yet. Send a test, or wait for the next approval."
            />
            <Pager pagination={pagination} next={next_cursor} />
          </>
        )}
      </QueryResult>
    </Card>
  )
}

const tones: Record<Message['state'], Tone> = { pending: 'neutral', sent: 'success', failed: 'error' }

const createColumns = ({ recipients }: Channel): Column<Message>[] => [
  { name: 'At', render: ({ created_at }) => <Timestamp at={created_at} /> },
  {
    name: 'About',
    render: ({ approval_id }) =>
      approval_id ? (
        <a href={routeHref(['account', 'approvals', approval_id])}>
          <Id value={approval_id} />
        </a>
      ) : (
        'a test'
      ),
  },
  {
    name: 'To',
    render: ({ recipient_id }) => recipients.find((recipient) => recipient.id === recipient_id)?.email ?? NO_VALUE,
    wide: true,
  },
  { name: 'State', render: ({ state }) => <Badge tone={tones[state]}>{state}</Badge> },
  { name: 'Attempts', render: ({ attempts }) => attempts, numeric: true },
  { name: 'Problem', render: ({ last_error }) => last_error ?? NO_VALUE, wide: true },
  {
    name: 'Next attempt',
    render: ({ next_attempt_at }) => (next_attempt_at ? <Timestamp at={next_attempt_at} /> : NO_VALUE),
  },
]
