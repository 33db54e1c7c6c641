import { type FormEvent, useState } from 'react'
import { Field } from '../components/form-fields.tsx'
import { ErrorMessage } from '../components/ui.tsx'
import { signIn } from './sign-in.ts'

export function SignInForm() {
  const [state, setState] = useState<{ pending: boolean; problem?: string }>({ pending: false })
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const apiKey = String(new FormData(form).get('api_key')).trim()
    // Clear the field at once: the key must not stay anywhere in the page.
    form.reset()
    setState({ pending: true })
    try {
      await signIn(apiKey)
    } catch (error) {
      setState({ pending: false, problem: (error as Error).message })
    }
  }
  return (
    <>
      <form onSubmit={(event) => void submit(event)} className="filters">
        <Field label="API key">
          {(id) => (
            <input
              id={id}
              name="api_key"
              type="password"
              autoComplete="off"
              placeholder="csk_…"
              maxLength={200}
              required
            />
          )}
        </Field>
        <button type="submit" disabled={state.pending}>
          Sign in
        </button>
      </form>
      {state.problem && <ErrorMessage>{state.problem}</ErrorMessage>}
    </>
  )
}
