import { createRequire } from 'node:module'
import { CountersignError } from '@countersign/sdk'
import { CliError, EXIT } from '../cli-error.ts'
import { green, red, show } from '../output.ts'
import { apiKey, connect, dataFolder, type ServiceOptions, serviceCommand, serviceUrl } from '../service.ts'

type Finding = { name: string; ok: boolean | 'skipped'; message: string }

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** Checks this machine and the service, and says what to do about each problem. */
export const doctorCommand = () =>
  serviceCommand('doctor')
    .description('check this machine, the service and your key, and say what to do')
    .action(async (options: ServiceOptions) => {
      const findings = [checkNode(), checkPlatform(), checkServer(), ...(await checkService(options))]
      show(findings, options, (list) =>
        list
          .map(({ name, ok, message }) => {
            const mark = ok === true ? green('ok     ') : ok === false ? red('PROBLEM') : 'skipped'
            return `${mark}  ${name.padEnd(10)}  ${message}`
          })
          .join('\n'),
      )
      if (findings.some(({ ok }) => ok === false)) process.exitCode = EXIT.no
    })

function checkNode(): Finding {
  const major = Number(process.versions.node.split('.')[0])
  return major >= 20
    ? { name: 'node', ok: true, message: `Node ${process.versions.node}.` }
    : { name: 'node', ok: false, message: `Node ${process.versions.node} is too old: install Node 20 or newer.` }
}

function checkPlatform(): Finding {
  const { platform, arch } = process
  if (platform === 'linux' && ['x64', 'arm64'].includes(arch))
    return {
      name: 'platform',
      ok: true,
      message: `${platform}-${arch}; the server brings its own Node and PostgreSQL.`,
    }
  if (platform === 'darwin')
    return { name: 'platform', ok: true, message: 'macOS: the server needs Node 24 installed; PostgreSQL comes along.' }
  return {
    name: 'platform',
    ok: 'skipped',
    message: `${platform}-${arch}: commands that call a service work; to run the server use Linux, macOS or WSL 2.`,
  }
}

function checkServer(): Finding {
  try {
    createRequire(import.meta.url).resolve('@countersign/server/package.json')
    return { name: 'server', ok: true, message: 'The server is installed.' }
  } catch {
    return { name: 'server', ok: 'skipped', message: 'The server is not installed: npm install @countersign/server.' }
  }
}

async function checkService(options: ServiceOptions): Promise<Finding[]> {
  const url = serviceUrl(options)
  const client = connect(options, { timeoutMs: 5_000 })
  const findings: Finding[] = []
  try {
    const { status } = await client.get('/api/health')
    findings.push({ name: 'service', ok: status === 'ok', message: `${url} says ${status}.` })
  } catch (error) {
    const message = `${url} cannot be reached (${messageOf(error)}): start one with 'countersign serve', or set COUNTERSIGN_URL.`
    return [{ name: 'service', ok: false, message }]
  }
  try {
    const { status, missing_required } = await client.get('/api/env-check')
    const message = status === 'ok' ? 'All required settings are given.' : `Set ${missing_required.join(', ')}.`
    findings.push({ name: 'settings', ok: status === 'ok', message })
  } catch (error) {
    findings.push({ name: 'settings', ok: 'skipped', message: messageOf(error) })
  }
  findings.push(await checkKey(options, client))
  findings.push({ name: 'data', ok: true, message: `Data folder ${dataFolder()}.` })
  return findings
}

async function checkKey(options: ServiceOptions, client: ReturnType<typeof connect>): Promise<Finding> {
  const advice = "make one with 'countersign keys onboard' and set COUNTERSIGN_API_KEY"
  if (apiKey(options) === undefined) return { name: 'key', ok: 'skipped', message: `No API key is given: ${advice}.` }
  try {
    const { org_name, scopes } = await client.get('/api/me')
    return { name: 'key', ok: true, message: `Key of ${org_name} with ${scopes.join(', ')}.` }
  } catch (error) {
    if (!(error instanceof CountersignError)) throw new CliError(messageOf(error))
    return { name: 'key', ok: false, message: `The key is refused (${error.message}): ${advice}.` }
  }
}
