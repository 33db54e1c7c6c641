// Starts what the pages of /docs do with a script: search, moving between pages, copying, and sending a call.

import { el } from '/docs/assets/element.js'
import { onPage, startNavigation } from '/docs/assets/navigation.js'
import { startSearch } from '/docs/assets/search.js'
import { showTryIt } from '/docs/assets/try-it.js'

const COPIED_MS = 1_500

/** A button on every code block that copies its text. */
export function addCopyButtons(root) {
  for (const block of root.querySelectorAll('pre')) {
    if (block.parentElement.classList.contains('code')) continue
    const label = block.getAttribute('aria-label') ?? 'text'
    const button = el('button', { type: 'button', className: 'copy', textContent: 'Copy' })
    button.setAttribute('aria-label', `Copy: ${label}`)
    button.addEventListener('click', async () => {
      button.textContent = (await copy(block)) ? 'Copied' : 'Selected'
      setTimeout(() => {
        button.textContent = 'Copy'
      }, COPIED_MS)
    })
    const frame = el('div', { className: 'code' })
    block.replaceWith(frame)
    frame.append(block, button)
  }
}

/** A page that was not loaded over https may not write to the clipboard; its text is then selected. */
async function copy(block) {
  try {
    await navigator.clipboard.writeText(block.textContent)
    return true
  } catch {
    getSelection().selectAllChildren(block)
    return false
  }
}

/** Former links were to a heading on one long page: `/docs#run`. */
function followFormerLink() {
  const { pathname, hash } = location
  if (pathname.replace(/\/$/, '') !== '/docs' || hash === '') return
  const link = document.getElementById(decodeURIComponent(hash.slice(1)))?.querySelector('a[href^="/docs/operations/"]')
  if (link) location.replace(link.href)
}

followFormerLink()
onPage((main) => {
  addCopyButtons(main)
  showTryIt(main, addCopyButtons)
})
startNavigation()
startSearch()
