/** Downloads a JSON file from memory, so it also works when the service cannot be reached. */
export function SaveButton({ name, value, children }: { name: string; value: unknown; children: string }) {
  const save = () => {
    const url = URL.createObjectURL(new Blob([`${JSON.stringify(value, null, 2)}\n`], { type: 'application/json' }))
    const link = Object.assign(document.createElement('a'), { href: url, download: name })
    link.click()
    URL.revokeObjectURL(url)
  }
  return (
    <button type="button" className="secondary" onClick={save}>
      {children}
    </button>
  )
}
