// An agent (AI SDK) that buys work from Countersign with a budget that it cannot exceed.
// MODEL_URL is an OpenAI-compatible server, MODEL its model.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { GovernanceRefused } from '@countersign/sdk'
import { generateText, isStepCount, jsonSchema, tool } from 'ai'
import { createOrganisation } from './support.mjs'

const { client } = await createOrganisation(1)
await client.post('/api/budgets', {
  body: { scope: { type: 'tenant' }, window: 'day', limit_usdc: 0.02, on_breach: 'block' },
})

const buyWork = tool({
  description: 'Has a task done by a paid specialist. Says so when the budget does not allow it.',
  inputSchema: jsonSchema({
    type: 'object',
    properties: { task: { type: 'string' }, specialist: { type: 'string' } },
    required: ['task', 'specialist'],
    additionalProperties: false,
  }),
  async execute({ task, specialist }, { toolCallId }) {
    try {
      // The id of the tool call names the purchase: a step that is repeated is not paid twice.
      const { output, run, receipt } = await client.run({ task, agent_id: specialist }, { idempotencyKey: toolCallId })
      console.log(`Bought from ${run.agent_id} for ${run.price_usdc} USDC; receipt verified: ${receipt.verified}`)
      return output
    } catch (error) {
      if (!(error instanceof GovernanceRefused)) throw error
      console.log(`Refused: ${error.message}`)
      return `Refused: ${error.message}`
    }
  },
})

const provider = createOpenAICompatible({ name: 'model', baseURL: process.env.MODEL_URL })
const { text } = await generateText({
  model: provider(process.env.MODEL ?? 'model'),
  prompt: 'Get a joke about clocks, and then another one.',
  tools: { buyWork },
  stopWhen: isStepCount(5),
})
console.log(text)

const { totals } = await client.get('/api/analytics')
console.log(`Spent today: ${totals.spend_usdc} USDC`)
