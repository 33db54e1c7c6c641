import { verifyReceipt } from '@countersign/proof'

const element = (id) => document.getElementById(id)

element('verify').addEventListener('click', () => {
  element('checks').replaceChildren()
  try {
    const receipt = JSON.parse(element('receipt').value)
    const { ok, checks } = verifyReceipt(receipt, { jwks: JSON.parse(element('keys').value) })
    element('result').textContent = ok ? 'The receipt is valid.' : 'The receipt is NOT valid.'
    for (const { name, ok: passed, reason } of checks) {
      const item = document.createElement('li')
      item.textContent = `${passed === null ? 'skipped' : passed ? 'ok' : 'failed'}: ${name}, ${reason}`
      element('checks').append(item)
    }
  } catch (error) {
    element('result').textContent = `Not readable: ${error.message}`
  }
})
