// Buys from the shop of seller.mjs with the official x402 client.
import { createClient, createDevelopmentAccount } from '@countersign/sdk'
import { payingFetch } from '@countersign/sdk/pay'
import { baseUrl } from './support.mjs'

const account = await createDevelopmentAccount()
await createClient({ baseUrl }).post('/api/dev/faucet', { body: { address: account.address, amount_usdc: 1 } })
const buy = await payingFetch(account, { maxUsdc: 0.05 })
const response = await buy(`${process.env.SHOP_URL ?? 'http://127.0.0.1:3000'}/forecast`)
console.log(response.status, JSON.stringify(await response.json()))
