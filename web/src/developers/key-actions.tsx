import type { SectionProps } from '../account/section-props.ts'
import { api } from '../api.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import type { ApiKey } from './key-state.ts'
import { useOverlap } from './overlap-select.tsx'

type Props = Pick<SectionProps, 'me'> & { apiKey: ApiKey }

export function RotateKeyButton({ apiKey, me, onNewKey }: Props & { onNewKey: (secret: string) => void }) {
  const overlap = useOverlap('The old key stays valid for')
  const { key_id, name } = apiKey
  return (
    <ConfirmButton
      className="secondary"
      title={`Rotate “${name}”?`}
      text={
        <>
          <p>A new key with the same rights takes its place and is shown once. The old one ends after the overlap.</p>
          {overlap.select}
          {key_id === me.key_id && (
            <p>
              This page is signed in with it: when the old key ends, so does this session. Sign in with the new key.
            </p>
          )}
        </>
      }
      confirmLabel="Rotate key"
      action={async () => {
        const path = { key_id }
        const { api_key } = await api.post('/api/keys/{key_id}/rotate', {
          path,
          body: { overlap_seconds: overlap.seconds },
        })
        onNewKey(api_key)
        scrollTo(0, 0)
      }}
    >
      Rotate
    </ConfirmButton>
  )
}

export function RevokeKeyButton({ apiKey: { key_id, name }, me }: Props) {
  const isOwn = key_id === me.key_id
  return (
    <ConfirmButton
      title={`Revoke “${name}”?`}
      text={
        <>
          <p>Whoever uses this key gets 401 from now on, everywhere. It cannot be undone.</p>
          {isOwn && (
            <p>
              <strong>This page is signed in with it: you are signed out at once.</strong> Make sure that you have
              another key.
            </p>
          )}
          <p>Keys that it made stay valid.</p>
        </>
      }
      confirmLabel="Revoke key"
      action={() => api.delete('/api/keys/{key_id}', { path: { key_id } })}
    >
      Revoke
    </ConfirmButton>
  )
}
