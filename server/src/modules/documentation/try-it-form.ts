import { type Html, html } from '../../platform/html.ts'
import type { Operation, Parameter } from './api-description.ts'
import { exampleBody, exampleValue } from './code-samples.ts'

/** Calls by POST that end, move or decide something that exists, though their path names no record. */
const CONSEQUENTIAL = new Set([
  'steerAgent',
  'closePreauth',
  'resolveApproval',
  'rhRun',
  'rhApprove',
  'rhAuthRevoke',
  'setRhKillSwitch',
  'settle',
])

/** What a person confirms before the page sends the call; undefined for one that only reads or creates. */
export function confirmation({ operationId, method, path, security = [] }: Operation): string | undefined {
  if (method === 'get') return undefined
  if (method === 'delete') return 'This call deletes or ends something, on the live service.'
  if (security.some((requirement) => 'adminKey' in requirement)) return 'This call changes the service as its operator.'
  const changes = ['put', 'patch'].includes(method) || path.includes('{') || CONSEQUENTIAL.has(operationId)
  return changes ? 'This call changes something that exists, on the live service.' : undefined
}

const CREDENTIALS = [
  { scheme: 'apiKey', header: 'X-API-Key', label: 'API key' },
  { scheme: 'adminKey', header: 'X-Admin-Key', label: 'Operator key' },
  { scheme: 'bearer', header: 'Authorization', label: 'Bearer token' },
]

function credentialField(operation: Operation): Html | false {
  const schemes = (operation.security ?? []).flatMap((requirement) => Object.keys(requirement))
  const takesKey = (operation.parameters ?? []).some(({ name }) => name === 'X-API-Key')
  const credential = CREDENTIALS.find(({ scheme }) => schemes.includes(scheme) || (takesKey && scheme === 'apiKey'))
  if (!credential) return false
  return html`<div class="form-field"><label for="try-credential">${credential.label}</label>
<input id="try-credential" type="password" autocomplete="off" spellcheck="false" maxlength="4096" data-header="${credential.header}" aria-describedby="try-credential-note">
<p class="muted" id="try-credential-note">Kept in this page's memory and sent to this service only.</p>
<label class="check"><input id="try-remember" type="checkbox"> Keep it for this tab until it is closed</label></div>`
}

function parameterField(parameter: Parameter): Html {
  const { name, in: place, required, schema = {} } = parameter
  const id = `try-${place}-${name}`
  const values = schema.enum ?? schema.anyOf?.flatMap((variant) => variant.enum ?? []) ?? []
  const attributes = html`id="${id}" data-place="${place}" data-name="${name}"${required && html` required`}`
  const label = html`<label for="${id}"><code>${name}</code>${required && ' (required)'}</label>`
  if (values.length > 0)
    return html`<div class="form-field">${label}<select ${attributes}>${!required && html`<option value=""></option>`}${values.map((value) => html`<option>${String(value)}</option>`)}</select></div>`
  const value = place === 'path' || (place === 'query' && required) ? exampleValue(parameter) : ''
  const hint = schema.default === undefined ? '' : `default ${String(schema.default)}`
  return html`<div class="form-field">${label}<input ${attributes} autocomplete="off" spellcheck="false" value="${value}" placeholder="${hint}"></div>`
}

/** The form that sends the call from the page. It is hidden until its script shows it. */
export function tryIt(operation: Operation): Html {
  const { method, path, parameters = [], requestBody } = operation
  const body = exampleBody(operation)
  const own = parameters.filter(({ name }) => name !== 'X-API-Key')
  return html`<section id="try" aria-labelledby="try-heading" hidden>
<h2 id="try-heading">Try it</h2>
<form data-method="${method.toUpperCase()}" data-path="${path}" data-confirmation="${confirmation(operation)}">
${credentialField(operation)}
${own.map(parameterField)}
${
  requestBody &&
  html`<div class="form-field"><label for="try-body">Body, as JSON</label>
<textarea id="try-body" rows="8" spellcheck="false">${body === undefined ? '' : JSON.stringify(body, null, 2)}</textarea></div>`
}
<p class="actions"><button type="submit">Send ${method.toUpperCase()}</button> <button type="button" class="secondary" data-action="stop" hidden>Stop</button></p>
</form>
<div id="answer" role="status"></div>
</section>`
}
