import { Command } from 'commander'
import { apiKey, type ServiceOptions, serviceUrl } from '../service.ts'

export const mcpCommand = (): Command =>
  new Command('mcp')
    .description('serve the tools of a service over stdin and stdout (Model Context Protocol)')
    .option('--url <address>', 'the service; else COUNTERSIGN_URL, else the one started from this folder')
    .option('--key-file <file>', 'file of the API key; else COUNTERSIGN_API_KEY')
    .action(async (options: ServiceOptions) => {
      // Loaded here, so that the other commands start without it.
      const { serveMcp } = await import('../mcp-server.ts')
      serveMcp(serviceUrl(options), apiKey(options)?.trim())
    })
