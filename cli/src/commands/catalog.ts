import { textOrInput, usdc } from '../arguments.ts'
import { formatFields, formatTable, safeText, show } from '../output.ts'
import { connect, type ServiceOptions, serviceCommand } from '../service.ts'

export const pricingCommand = () =>
  serviceCommand('pricing')
    .description('lanes and their prices')
    .action(async (options: ServiceOptions) =>
      show(await connect(options).get('/api/pricing'), options, ({ agents }) =>
        formatTable(agents, [
          ['LANE', ({ agent_id }) => agent_id],
          ['USDC', ({ price_usdc }) => price_usdc],
          ['TIER', ({ tier }) => tier],
          ['ABOUT', ({ description }) => description],
        ]),
      ),
    )

type RouteOptions = ServiceOptions & { maxUsdc?: number; agent?: string }

export const routeCommand = () =>
  serviceCommand('route')
    .description('which lane fits a task and what it costs; free')
    .argument('<task>', 'the task, or - for standard input')
    .option('--agent <lane>', 'prefer this lane')
    .option('--max-usdc <amount>', 'what a run may cost', usdc)
    .action(async (task: string, options: RouteOptions) => {
      const body = {
        task: textOrInput(task),
        ...(options.agent !== undefined && { preferred_agent_id: options.agent }),
        ...(options.maxUsdc !== undefined && { constraints: { max_cost_usdc: options.maxUsdc } }),
      }
      show(await connect(options).post('/api/route', { body }), options, (route) =>
        [
          formatFields([
            ['lane', route.recommended_agent_id],
            ['price', route.price_usdc === null ? null : `${route.price_usdc} USDC`],
            ['decision', route.decision],
            ['confidence', route.confidence],
            ['reason', safeText(route.reason)],
          ]),
          formatTable(
            route.alternatives,
            [
              ['INSTEAD', ({ agent_id }) => agent_id],
              ['USDC', ({ price_usdc }) => price_usdc],
              ['WHY NOT', ({ why_not }) => why_not],
            ],
            '',
          ),
        ].join('\n\n'),
      )
    })
