// Moves between pages without loading the next one whole, so that a key that was typed in stays in memory.

const listeners = []

/** Calls `listener` with the main element of every page, the present one included. */
export const onPage = (listener) => listeners.push(listener)

const main = () => document.getElementById('docs-content')
const withoutHash = ({ pathname, search }) => `${pathname}${search}`

let shownPage = withoutHash(location)
let latest = 0

/** Opens what hides the element that the address names, and scrolls there. */
export function revealTarget() {
  const id = safelyDecode(location.hash.slice(1))
  const target = id && document.getElementById(id)
  if (!target) return false
  for (let node = target.parentElement; node; node = node.parentElement)
    if (node.tagName === 'DETAILS') node.open = true
  for (const marked of document.querySelectorAll('.target')) marked.classList.remove('target')
  target.classList.add('target')
  target.scrollIntoView()
  return true
}

function safelyDecode(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Shows the page at the address; anything unexpected is left to the browser. */
async function show(url, { scroll = true } = {}) {
  latest += 1
  const turn = latest
  const response = await fetch(withoutHash(url), { headers: { accept: 'text/html' } })
  if (!response.headers.get('content-type')?.startsWith('text/html')) throw new Error('The answer is not a page.')
  const next = new DOMParser().parseFromString(await response.text(), 'text/html')
  const content = next.getElementById('docs-content')
  if (!content) throw new Error('The page has no content.')
  // Another link was followed meanwhile.
  if (turn !== latest) return
  document.title = next.title
  main().replaceChildren(...content.childNodes)
  shownPage = withoutHash(url)
  markCurrent(url.pathname)
  for (const listener of listeners) listener(main())
  main().focus({ preventScroll: true })
  document.getElementById('docs-announcement').textContent = next.title
  if (!revealTarget() && scroll) scrollTo(0, 0)
}

function markCurrent(pathname) {
  const contents = document.getElementById('docs-contents')
  for (const link of contents.querySelectorAll('a')) {
    const isCurrent = link.pathname === pathname
    if (isCurrent) link.setAttribute('aria-current', 'page')
    else link.removeAttribute('aria-current')
    if (isCurrent) link.closest('details')?.setAttribute('open', '')
  }
  if (contents.matches(':popover-open')) contents.hidePopover()
}

const isOurPage = ({ origin, pathname }) =>
  origin === location.origin && /^\/docs(\/(operations|guides)\/[^/.]+)?\/?$/.test(pathname)

/** Goes to a page as a link does. */
export async function go(href) {
  const url = new URL(href, location.href)
  if (withoutHash(url) === shownPage) {
    history.pushState(null, '', url)
    return revealTarget() || scrollTo(0, 0)
  }
  try {
    history.pushState(null, '', url)
    await show(url)
  } catch {
    location.assign(url)
  }
}

const isPlainClick = (event) =>
  event.button === 0 && !event.defaultPrevented && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)

export function startNavigation() {
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[href]')
    if (!link || !isPlainClick(event) || link.target || !isOurPage(link)) return
    event.preventDefault()
    void go(link.href)
  })
  addEventListener('popstate', () => {
    if (withoutHash(location) === shownPage) return void revealTarget()
    show(new URL(location.href), { scroll: false }).catch(() => location.reload())
  })
  for (const listener of listeners) listener(main())
  document.querySelector('#docs-contents [aria-current]')?.scrollIntoView({ block: 'nearest' })
  revealTarget()
}
