import type { OpenChain } from '../adapters/chain/open-chain.ts'
import { loadCurve } from '../adapters/facilitators/secp256k1.ts'
import { usdcFromMicro } from '../platform/money.ts'
import type { SecretFolder } from '../platform/secrets.ts'

const TOP_UP_MICRO = 1_000_000_000n
const MINIMUM_MICRO = 10_000_000n
export const PAYER_KEY_FILE = 'dev-payer.key'
/** The address of the key that was made here; a key of somebody else that was put into its place has another one. */
export const MADE_PAYER_FILE = 'dev-payer.address'

type DevelopmentParts = {
  secrets: SecretFolder
  chain: Pick<OpenChain, 'reader' | 'asset'> & { dev: Pick<NonNullable<OpenChain['dev']>, 'mint'> | undefined }
}

/** Creates a payer with test money on the embedded chain, and tops it up when its balance is low. */
export async function fundDevelopmentPayer({ secrets, chain }: DevelopmentParts) {
  const privateKey = secrets.readOrCreate(
    PAYER_KEY_FILE,
    () => `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')}`,
  ) as `0x${string}`
  const address = loadCurve().addressOf(Buffer.from(privateKey.slice(2), 'hex'))
  // The demo signs for the embedded chain only with the key that was made here.
  secrets.readOrCreate(MADE_PAYER_FILE, () => address)
  let balanceMicro = await chain.reader!.balanceOf(chain.asset, address)
  if (balanceMicro < MINIMUM_MICRO) {
    await chain.dev!.mint(address, TOP_UP_MICRO)
    balanceMicro += TOP_UP_MICRO
  }
  return { address, privateKey, balanceUsdc: usdcFromMicro(balanceMicro) }
}
