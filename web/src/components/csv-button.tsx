import { useMutation } from '@tanstack/react-query'
import { saveFile } from './save-button.tsx'
import { ErrorMessage } from './ui.tsx'

/** Saves rows as CSV; they may have to be read first. */
export function CsvButton({ name, readCsv }: { name: string; readCsv: () => string | Promise<string> }) {
  const save = useMutation({ mutationFn: async () => saveFile(name, 'text/csv', await readCsv()) })
  return (
    <>
      <button type="button" className="secondary" disabled={save.isPending} onClick={() => save.mutate()}>
        Save as CSV
      </button>
      {save.error && <ErrorMessage>{save.error.message}</ErrorMessage>}
    </>
  )
}
