// A shop (Express) that is paid by x402 and leaves checking and settling to Countersign's facilitator.
import { HTTPFacilitatorClient } from '@x402/core/server'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { paymentMiddleware, x402ResourceServer } from '@x402/express'
import express from 'express'
import { baseUrl } from './support.mjs'

const payTo = process.env.PAY_TO_ADDRESS ?? '0x000000000000000000000000000000000000dEaD'
const network = 'eip155:8453'
const facilitator = new HTTPFacilitatorClient({ url: `${baseUrl}/facilitator` })
const server = new x402ResourceServer(facilitator).register(network, new ExactEvmScheme())

const app = express()
app.use(
  paymentMiddleware(
    {
      'GET /forecast': {
        accepts: { scheme: 'exact', price: '$0.01', network, payTo },
        description: 'The weather of tomorrow',
      },
    },
    server,
  ),
)
app.get('/forecast', (_request, response) => {
  response.json({ tomorrow: 'clear' })
})

const listener = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`The shop listens on http://127.0.0.1:${listener.address().port}`)
})
