import { useEffect, useRef, useState } from 'react'

/** Takes files that are dropped anywhere on the page; true while some are held over it. */
export function useFileDrop(onFiles: (files: File[]) => void): boolean {
  const [isDropping, setDropping] = useState(false)
  const handler = useRef(onFiles)
  useEffect(() => {
    handler.current = onFiles
  })
  useEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false
    const handleOver = (event: DragEvent) => {
      if (!hasFiles(event)) return
      // Without this the browser would open the file in place of the page.
      event.preventDefault()
      setDropping(true)
    }
    const handleLeave = (event: DragEvent) => {
      if (event.relatedTarget === null) setDropping(false)
    }
    const handleDrop = (event: DragEvent) => {
      if (!hasFiles(event)) return
      event.preventDefault()
      setDropping(false)
      const files = [...(event.dataTransfer?.files ?? [])]
      if (files.length > 0) handler.current(files)
    }
    document.addEventListener('dragover', handleOver)
    document.addEventListener('dragleave', handleLeave)
    document.addEventListener('drop', handleDrop)
    return () => {
      document.removeEventListener('dragover', handleOver)
      document.removeEventListener('dragleave', handleLeave)
      document.removeEventListener('drop', handleDrop)
    }
  }, [])
  return isDropping
}
