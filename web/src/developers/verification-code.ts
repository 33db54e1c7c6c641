export type VerificationSample = { name: string; text: string; note: string }

const node = `import { createServer } from 'node:http'
import { verifyWebhook } from '@countersign/sdk'

createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk // the raw body, before any parsing
  try {
    const { type, seq, data } = await verifyWebhook(body, request.headers, process.env.SIGNING_SECRET)
    console.log(type, seq, data)
    response.writeHead(204).end()
  } catch {
    response.writeHead(400).end()
  }
}).listen(4128)
`

const python = `import base64, hashlib, hmac, os, time

def verify(body: bytes, headers) -> bool:
    key = base64.b64decode(os.environ["SIGNING_SECRET"].removeprefix("whsec_"))
    timestamp = headers["webhook-timestamp"]
    if abs(time.time() - int(timestamp)) > 300:
        return False
    signed = f"{headers['webhook-id']}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, given) for given in headers["webhook-signature"].split(" "))
`

const standardWebhooks = `// npm install standardwebhooks; also for Python, Go, Ruby, Rust, Java, PHP and others
import { Webhook } from "standardwebhooks"

const event = new Webhook(process.env.SIGNING_SECRET).verify(body, headers)
`

/** How a receiver verifies a delivery, in the words of each language. */
export const verificationSamples: VerificationSample[] = [
  {
    name: 'Node',
    text: node,
    note: 'npm install @countersign/sdk. It compares in constant time and refuses what is older than five minutes.',
  },
  { name: 'Python', text: python, note: 'Nothing to install. Pass the body as bytes, before any parsing.' },
  {
    name: 'Standard Webhooks',
    text: standardWebhooks,
    note: 'Any library of standardwebhooks.com takes the secret as it was shown, with whsec_.',
  },
]
