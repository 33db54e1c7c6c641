import type { ApiRequest, Approval, Budget } from '@countersign/sdk'
import { Command } from 'commander'
import { jsonFile, usdc, wholeNumber } from '../arguments.ts'
import { collect, formatFields, formatTable, show } from '../output.ts'
import { connect, type ServiceOptions, serviceCommand } from '../service.ts'

const DEFAULT_LIMIT = 50

const formatBudgets = ({ budgets }: { budgets: Budget[] }) =>
  formatTable(budgets, [
    ['BUDGET', ({ budget_id }) => budget_id],
    ['SCOPE', ({ scope }) => [scope.type, scope.id].filter(Boolean).join(' ')],
    ['WINDOW', ({ window }) => window],
    ['LIMIT', ({ limit_usdc }) => limit_usdc],
    ['SPENT', ({ spent_usdc }) => spent_usdc],
    ['HELD', ({ reserved_usdc }) => reserved_usdc],
    ['LEFT', ({ remaining_usdc }) => remaining_usdc],
    ['RESETS', ({ resets_at }) => resets_at],
  ])

type BudgetBody = ApiRequest<'/api/budgets', 'post'>['body']

export function budgetsCommand(): Command {
  const budgets = new Command('budgets').description('what may be spent')
  budgets.addCommand(
    serviceCommand('list')
      .description('budgets, what is spent and what is left')
      .action(async (options: ServiceOptions) =>
        show(await connect(options).get('/api/budgets'), options, formatBudgets),
      ),
  )
  budgets.addCommand(
    serviceCommand('set')
      .description('make a budget, or change the one with --id')
      .requiredOption('--limit <usdc>', 'how much may be spent', usdc)
      .option('--id <budget>', 'the budget to change')
      .option('--window <window>', 'run, day, week, month, total, rolling_24h, rolling_7d or rolling_30d', 'month')
      .option('--scope <type[:id]>', 'tenant, agent, session, mandate, spender, team, tag, merchant or key', 'tenant')
      .action(async (options: ServiceOptions & { limit: number; id?: string; window: string; scope: string }) => {
        const [type, ...id] = options.scope.split(':')
        const made = { window: options.window, scope: { type, ...(id.length > 0 && { id: id.join(':') }) } }
        const body = { limit_usdc: options.limit, ...(options.id ? { budget_id: options.id } : made) } as BudgetBody
        show(await connect(options).post('/api/budgets', { body }), options, formatBudgets)
      }),
  )
  budgets.addCommand(
    serviceCommand('delete')
      .description('delete a budget')
      .argument('<budget_id>')
      .action(async (budgetId: string, options: ServiceOptions) => {
        const deleted = await connect(options).delete('/api/budgets/{budget_id}', { path: { budget_id: budgetId } })
        show(deleted ?? { budget_id: budgetId }, options, () => `${budgetId} is deleted.`)
      }),
  )
  return budgets
}

type Simulation = ApiRequest<'/api/policies/simulate', 'post'>['body']

export function policiesCommand(): Command {
  const policies = new Command('policies').description('rules about payments')
  policies.addCommand(
    serviceCommand('list')
      .description('policies and their modes')
      .action(async (options: ServiceOptions) =>
        show(await collect(connect(options).policies.list(), DEFAULT_LIMIT), options, (items) =>
          formatTable(items, [
            ['POLICY', ({ id }) => id],
            ['NAME', ({ name }) => name],
            ['MODE', ({ mode }) => mode],
            ['STATUS', ({ status }) => status],
            ['VERSION', ({ version }) => version],
          ]),
        ),
      ),
  )
  policies.addCommand(
    serviceCommand('simulate')
      .description('what a policy would have decided about past payments; changes nothing')
      .argument('<file>', 'JSON of the policy, or - for standard input')
      .option('--replaces <policy_id>', 'the policy that it would replace')
      .option('--since <time>', 'ISO 8601')
      .option('--until <time>', 'ISO 8601')
      .option('--limit <count>', 'how many payments', wholeNumber)
      .action(async (file: string, options: ServiceOptions & Omit<Simulation, 'policy'>) => {
        const { replaces, since, until, limit } = options
        const range = Object.fromEntries(Object.entries({ replaces, since, until, limit }).filter(([, value]) => value))
        const body = { policy: jsonFile(file), ...range } as Simulation
        show(await connect(options).post('/api/policies/simulate', { body }), options, (result) =>
          [
            formatFields([
              ['considered', result.considered],
              ['newly blocked', `${result.newly_blocked} (${result.money.newly_blocked_usdc} USDC)`],
              ['newly reviewed', `${result.newly_review} (${result.money.newly_review_usdc} USDC)`],
              ['newly allowed', `${result.newly_allowed} (${result.money.newly_allowed_usdc} USDC)`],
            ]),
            formatTable(
              result.results.filter(({ change }) => change !== 'none'),
              [
                ['RUN', ({ run_id }) => run_id],
                ['LANE', ({ agent_id }) => agent_id],
                ['USDC', ({ amount_usdc }) => amount_usdc],
                ['CHANGE', ({ change }) => change],
              ],
              'No decision would change.',
            ),
          ].join('\n\n'),
        )
      }),
  )
  return policies
}

const formatApproval = (approval: Approval) =>
  formatFields([
    ['approval', approval.approval_id],
    ['status', approval.resolution ?? approval.status],
    ['amount', `${approval.amount_usdc} USDC`],
    ['lane', approval.agent_id],
    ['spender', approval.spender],
    ['reason', approval.reason],
    ['expires', approval.expires_at],
    ['next', approval.next],
  ])

export function approvalsCommand(): Command {
  const approvals = new Command('approvals').description('payments that wait for a person')
  approvals.addCommand(
    serviceCommand('list')
      .description('approvals; by default those that wait')
      .option('--status <status>', 'pending, approved or rejected', 'pending')
      .option('--limit <count>', 'how many', wholeNumber, DEFAULT_LIMIT)
      .action(async (options: ServiceOptions & { status: Approval['status']; limit: number }) =>
        show(
          await collect(connect(options).approvals.list({ status: options.status }), options.limit),
          options,
          (items) =>
            formatTable(
              items,
              [
                ['APPROVAL', ({ approval_id }) => approval_id],
                ['USDC', ({ amount_usdc }) => amount_usdc],
                ['LANE', ({ agent_id }) => agent_id],
                ['SPENDER', ({ spender }) => spender],
                ['REASON', ({ reason }) => reason],
                ['EXPIRES', ({ expires_at }) => expires_at],
              ],
              'Nothing waits.',
            ),
        ),
      ),
  )
  approvals.addCommand(
    serviceCommand('show')
      .description('one approval')
      .argument('<approval_id>')
      .action(async (id: string, options: ServiceOptions) =>
        show(await connect(options).get('/api/approvals/{id}', { path: { id } }), options, (value) =>
          formatApproval('approval' in value ? (value.approval as Approval) : (value as Approval)),
        ),
      ),
  )
  for (const decision of ['approve', 'reject'] as const)
    approvals.addCommand(
      serviceCommand(decision)
        .description(`${decision} a payment`)
        .argument('<approval_id>')
        .option('--reason <text>', 'why')
        .action(async (approvalId: string, options: ServiceOptions & { reason?: string }) => {
          const body = { approval_id: approvalId, decision, ...(options.reason && { reason: options.reason }) }
          const decided = await connect(options).post('/api/approvals', { body })
          show(decided, options, ({ approval }) => formatApproval(approval))
        }),
    )
  return approvals
}
