// Sends a call from its page to the service that served it, and shows the answer.

import { el } from '/docs/assets/element.js'

const STORED_KEYS = 'countersign.docs.'
const MAX_SHOWN_BYTES = 1_000_000
const MAX_SHOWN_TEXT = 200_000

/** Keys that were typed in, by the header that they go into. They are gone when the page is left or loaded again. */
const keys = new Map()

function readStoredKey(header) {
  try {
    return sessionStorage.getItem(STORED_KEYS + header)
  } catch {
    return null
  }
}

/** In the storage of this tab, and only when the person asked for it. */
function storeKey(header, key) {
  try {
    if (key) sessionStorage.setItem(STORED_KEYS + header, key)
    else sessionStorage.removeItem(STORED_KEYS + header)
  } catch {
    // The browser denies storage; the key stays in memory.
  }
}

export function showTryIt(main, decorate) {
  const section = main.querySelector('#try')
  if (!section) return
  const form = section.querySelector('form')
  const answer = section.querySelector('#answer')
  section.hidden = false
  prepareCredential(form)
  const idempotencyKey = form.querySelector('[data-name="Idempotency-Key"]')
  if (idempotencyKey) idempotencyKey.value = randomId()

  let controller
  const stop = form.querySelector('[data-action="stop"]')
  stop.addEventListener('click', () => controller?.abort())
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const request = readRequest(form)
    if (request.problem) {
      answer.replaceChildren(el('p', { className: 'error', textContent: request.problem }))
      return
    }
    const question = questionBefore(form, request)
    if (question && !(await confirmCall(question, request))) return
    controller = new AbortController()
    stop.hidden = false
    answer.replaceChildren(el('p', { className: 'muted', textContent: 'Sending…' }))
    try {
      answer.replaceChildren(...(await send(request, controller.signal)))
    } catch (error) {
      const message = controller.signal.aborted ? 'Stopped.' : `No answer: ${error.message}`
      answer.replaceChildren(el('p', { className: 'error', textContent: message }))
    }
    stop.hidden = true
    decorate(answer)
  })
}

/** `crypto.randomUUID` is missing on a page that was not loaded over https. */
const randomId = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')

function prepareCredential(form) {
  const input = form.querySelector('#try-credential')
  if (!input) return
  const { header } = input.dataset
  const remember = form.querySelector('#try-remember')
  const stored = readStoredKey(header)
  remember.checked = Boolean(stored)
  input.value = keys.get(header) ?? stored ?? ''
  const keep = () => {
    keys.set(header, input.value)
    storeKey(header, remember.checked ? input.value : '')
  }
  input.addEventListener('input', keep)
  remember.addEventListener('change', keep)
}

function readRequest(form) {
  const { method, path } = form.dataset
  const values = (place) =>
    [...form.querySelectorAll(`[data-place="${place}"]`)]
      .map((input) => [input.dataset.name, input.value.trim()])
      .filter(([, value]) => value !== '')
  const pathValues = new Map(values('path'))
  const filled = path.replace(/\{([^}]+)\}/g, (_, name) =>
    encodeURIComponent(pathValues.get(name) ?? '').replaceAll('%2F', '/'),
  )
  const query = new URLSearchParams(values('query')).toString()
  const headers = Object.fromEntries(values('header'))
  const credential = form.querySelector('#try-credential')
  const key = credential?.value.trim()
  if (key) headers[credential.dataset.header] = credential.dataset.header === 'Authorization' ? `Bearer ${key}` : key
  const unsendable = Object.entries(headers).find(([, value]) => !/^[\x20-\x7e]*$/.test(value))
  if (unsendable) return { problem: `${unsendable[0]} has a character that a header cannot have.` }
  const body = form.querySelector('#try-body')?.value.trim()
  if (body) {
    try {
      JSON.parse(body)
    } catch (error) {
      return { problem: `The body is not JSON: ${error.message}` }
    }
    headers['Content-Type'] = 'application/json'
  }
  return { method, url: `${filled}${query ? `?${query}` : ''}`, headers, body: body || undefined }
}

/** What has to be confirmed: a change, or money that may leave. */
function questionBefore(form, { headers, body }) {
  if (headers['PAYMENT-SIGNATURE'] || headers['X-PAYMENT']) return 'This call is sent with a signed payment.'
  if (body && JSON.parse(body)?.payment) return 'This call is paid from a wallet.'
  return form.dataset.confirmation
}

function confirmCall(question, { method, url }) {
  const proceed = el('button', { type: 'submit', value: 'send', textContent: `Send ${method}` })
  const cancel = el('button', { type: 'submit', value: 'cancel', className: 'secondary', textContent: 'Cancel' })
  const dialog = el(
    'dialog',
    {},
    el(
      'form',
      { method: 'dialog' },
      el('h2', { id: 'confirm-heading', textContent: 'Send this call?' }),
      el('p', {}, el('code', { textContent: `${method} ${url}` })),
      el('p', { textContent: question }),
      el('p', { className: 'actions' }, proceed, ' ', cancel),
    ),
  )
  dialog.setAttribute('aria-labelledby', 'confirm-heading')
  document.body.append(dialog)
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove()
      resolve(dialog.returnValue === 'send')
    })
    dialog.showModal()
    cancel.focus()
  })
}

async function send({ method, url, headers, body }, signal) {
  const startedAt = performance.now()
  // Without cookies: only the key that was typed in acts. A redirect could lead to another origin, so it is not followed.
  const response = await fetch(url, {
    method,
    headers,
    body,
    signal,
    credentials: 'omit',
    redirect: 'manual',
    cache: 'no-store',
  })
  if (response.type === 'opaqueredirect')
    return [
      el('p', { textContent: 'The answer is a redirect, which a page may not read. ' }, ''),
      el('p', {}, el('a', { href: url, textContent: 'Open it in the browser' })),
    ]
  const { bytes, isCut } = await readBytes(response)
  const ms = Math.round(performance.now() - startedAt)
  return renderAnswer(response, bytes, { ms, isCut })
}

/** A stream ends after its first event: it would never end by itself. */
async function readBytes(response) {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  const chunks = []
  let length = 0
  const reader = response.body?.getReader()
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true }
    if (done) break
    chunks.push(value)
    length += value.length
    if (length <= MAX_SHOWN_BYTES && !(isStream && includesEvent(chunks))) continue
    await reader.cancel()
    return { bytes: await join(chunks), isCut: true }
  }
  return { bytes: await join(chunks), isCut: false }
}

const includesEvent = (chunks) => new TextDecoder().decode(chunks.at(-1)).includes('\n\n')
const join = async (chunks) => new Uint8Array(await new Blob(chunks).arrayBuffer())

function renderAnswer(response, bytes, { ms, isCut }) {
  const type = response.headers.get('content-type') ?? ''
  const kind = response.ok ? 'success' : 'error'
  const headerText = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
  return [
    el(
      'p',
      {},
      el('strong', { className: `answer-status ${kind}`, textContent: `${response.status} ${response.statusText}` }),
      ` in ${ms} ms`,
    ),
    ...(response.status === 402 ? [renderTerms(response, bytes)] : []),
    el('h3', { textContent: 'Body' }),
    ...renderBody(type, bytes),
    isCut && el('p', { className: 'muted', textContent: 'The rest was not read.' }),
    el('details', {}, el('summary', { textContent: 'Headers' }), pre(headerText, 'Headers of the answer')),
  ].filter(Boolean)
}

const pre = (text, label) => {
  const block = el('pre', { tabIndex: 0 }, el('code', { textContent: text.slice(0, MAX_SHOWN_TEXT) }))
  block.setAttribute('role', 'group')
  block.setAttribute('aria-label', label)
  return block
}

function renderBody(type, bytes) {
  if (bytes.length === 0) return [el('p', { className: 'muted', textContent: 'Empty.' })]
  if (!/json|text|xml/.test(type))
    return [el('p', { className: 'muted', textContent: `${bytes.length} bytes of ${type || 'an unnamed type'}.` })]
  const text = new TextDecoder().decode(bytes)
  return [pre(formatJson(text), 'Body of the answer')]
}

function formatJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

const USDC_UNITS = 1_000_000

/** The terms of a 402, from the header of x402 version 2 or else the body of version 1. */
function renderTerms(response, bytes) {
  const terms = readTerms(response.headers.get('payment-required')) ?? readJson(new TextDecoder().decode(bytes)) ?? {}
  const [offer] = terms.accepts ?? []
  if (!offer) return el('p', { textContent: 'This 402 offers no way to pay; its message says what to do.' })
  const amount = offer.amount ?? offer.maxAmountRequired
  const rows = [
    ['Price', `${Number(amount) / USDC_UNITS} USDC (${amount} units)`],
    ['Scheme', `${offer.scheme} on ${offer.network}`],
    ['Pay to', offer.payTo],
    ['Asset', offer.asset],
    ['Time to pay', offer.maxTimeoutSeconds && `${offer.maxTimeoutSeconds} seconds`],
    ['For', terms.resource?.url ?? offer.resource],
  ].filter(([, value]) => value)
  return el(
    'div',
    { className: 'terms' },
    el('h3', { textContent: 'Payment is required' }),
    el(
      'dl',
      {},
      ...rows.flatMap(([name, value]) => [el('dt', { textContent: name }), el('dd', { textContent: value })]),
    ),
    el('p', {
      className: 'muted',
      textContent: 'Nothing was charged. Sign these terms with an x402 client, or use the TypeScript above.',
    }),
    el(
      'details',
      {},
      el('summary', { textContent: 'PAYMENT-REQUIRED, decoded' }),
      pre(JSON.stringify(terms, null, 2), 'Decoded terms'),
    ),
  )
}

function readTerms(header) {
  if (!header) return undefined
  try {
    return readJson(new TextDecoder().decode(Uint8Array.from(atob(header), (character) => character.charCodeAt(0))))
  } catch {
    return undefined
  }
}

function readJson(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
