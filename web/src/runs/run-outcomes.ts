import type { Tone } from '../components/ui.tsx'

export const outcomeTones: Record<string, Tone> = {
  completed: 'success',
  blocked: 'error',
  failed: 'error',
  escalated: 'warning',
}
