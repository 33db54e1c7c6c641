import { loadCurve } from '../adapters/facilitators/secp256k1.ts'
import type { Service } from '../app.ts'
import { usdcFromMicro } from '../platform/money.ts'

const START_MICRO = 1_000_000_000n
const LEAST_MICRO = 10_000_000n

/** With the embedded chain there is an account that can pay at once; it is filled up when it runs low. */
export async function fundDevelopmentPayer({ secrets, chain }: Service) {
  const privateKey = secrets.readOrCreate(
    'dev-payer.key',
    () => `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')}`,
  ) as `0x${string}`
  const address = loadCurve().addressOf(Buffer.from(privateKey.slice(2), 'hex'))
  let balance = await chain.reader!.balanceOf(chain.asset, address)
  if (balance < LEAST_MICRO) {
    await chain.dev!.mint(address, START_MICRO)
    balance += START_MICRO
  }
  return { address, privateKey, balanceUsdc: usdcFromMicro(balance) }
}
