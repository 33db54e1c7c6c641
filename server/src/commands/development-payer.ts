import { loadCurve } from '../adapters/facilitators/secp256k1.ts'
import type { Service } from '../app.ts'
import { usdcFromMicro } from '../platform/money.ts'

const TOP_UP_MICRO = 1_000_000_000n
const MINIMUM_MICRO = 10_000_000n

/** Creates a payer with test money on the embedded chain, and tops it up when its balance is low. */
export async function fundDevelopmentPayer({ secrets, chain }: Service) {
  const privateKey = secrets.readOrCreate(
    'dev-payer.key',
    () => `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')}`,
  ) as `0x${string}`
  const address = loadCurve().addressOf(Buffer.from(privateKey.slice(2), 'hex'))
  let balanceMicro = await chain.reader!.balanceOf(chain.asset, address)
  if (balanceMicro < MINIMUM_MICRO) {
    await chain.dev!.mint(address, TOP_UP_MICRO)
    balanceMicro += TOP_UP_MICRO
  }
  return { address, privateKey, balanceUsdc: usdcFromMicro(balanceMicro) }
}
