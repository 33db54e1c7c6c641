import type { Policy } from '@countersign/sdk'
import { api } from '../api.ts'
import { ActionButton } from '../components/action-button.tsx'

/** Switches a policy off or on again; either is a new version. */
export const SwitchButton = ({ policy: { id, status } }: { policy: Pick<Policy, 'id' | 'status'> }) => (
  <ActionButton
    className="secondary"
    action={() =>
      api.patch('/api/policies/{id}', { path: { id }, body: { status: status === 'active' ? 'inactive' : 'active' } })
    }
  >
    {status === 'active' ? 'Switch off' : 'Switch on'}
  </ActionButton>
)
