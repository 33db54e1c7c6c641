/** Hands a JSON file to the reader: from memory, so also when the service is gone. */
export function SaveButton({ name, value, children }: { name: string; value: unknown; children: string }) {
  const save = () => {
    const url = URL.createObjectURL(new Blob([`${JSON.stringify(value, null, 2)}\n`], { type: 'application/json' }))
    const anchor = Object.assign(document.createElement('a'), { href: url, download: name })
    anchor.click()
    URL.revokeObjectURL(url)
  }
  return (
    <button type="button" className="quiet" onClick={save}>
      {children}
    </button>
  )
}
