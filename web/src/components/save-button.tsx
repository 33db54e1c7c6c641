/** Downloads a file from memory, so it also works when the service cannot be reached. */
export function saveFile(name: string, type: string, text: string) {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = Object.assign(document.createElement('a'), { href: url, download: name })
  link.click()
  URL.revokeObjectURL(url)
}

export const SaveButton = ({ name, value, children }: { name: string; value: unknown; children: string }) => (
  <button
    type="button"
    className="secondary"
    onClick={() => saveFile(name, 'application/json', `${JSON.stringify(value, null, 2)}\n`)}
  >
    {children}
  </button>
)
