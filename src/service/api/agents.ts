import { z } from 'zod'
import { givenProviderSchema, providerSchema } from './values.js'

export const capabilitiesSchema = z.object({
  supports_session_continuation: z.boolean(),
  supports_model_selection: z.boolean(),
  supports_tool_control: z.boolean(),
  supports_max_turns: z.boolean(),
  supports_streaming: z.boolean(),
  supported_models: z
    .array(z.string())
    .describe('Those that its command line lists; others may work, too. Empty where it lists none.'),
  default_model: z.string().nullable().describe('The one configured; without it the agent chooses.'),
  default_max_turns: z
    .number()
    .nullable()
    .describe('How many turns a message has in a project without max_turns: BACKEND_MAX_TURNS; null without a limit.'),
  max_prompt_length: z.number().describe('0 is unlimited.'),
})

export const agentLoginSchema = z.object({
  state: z.enum(['logged-in', 'logged-out', 'unknown']),
  how: z.string().nullable().describe('By what it is logged in, such as the name of a variable.'),
  why: z.string().nullable().describe('Why it cannot be told whether it is logged in.'),
  fix: z.string().describe('The command that logs it in, or in anew, on the machine of the gateway.'),
  next: z.string().nullable().describe('What to do in the program that this command starts.'),
})

export const agentSchema = z.object({
  provider: providerSchema,
  is_demo: z.boolean().describe('Whether the built-in demonstration agent stands in for it, which has no model.'),
  status: z
    .enum(['available', 'unavailable'])
    .describe('Whether it is there. An unavailable one has a problem that says why.'),
  path: z
    .string()
    .nullable()
    .describe('Where its command line is, or its server is looked for; null when it is not installed.'),
  version: z.string().nullable().describe('As its command line tells; null when it told none in time.'),
  install: z
    .string()
    .nullable()
    .describe('The command that installs it where it is missing, or its newest version where it is too old.'),
  login: agentLoginSchema
    .nullable()
    .describe(
      'Whether it is logged in, as far as can be told without its model; null when it is not there, or needs no login.',
    ),
  model: z
    .string()
    .nullable()
    .describe('The model of a turn that names none, where the configuration or its own settings tell it.'),
  problems: z.array(z.string()).describe('What an operator should know or do.'),
  mode: z
    .enum(['live', 'oneshot'])
    .nullable()
    .describe(
      'Whether its process stays for the next turn, where a project says nothing else; null when it is not there.',
    ),
  why_not_live: z.string().nullable().describe('Why its process does not stay although it might.'),
  is_default: z.boolean().describe('Whether new projects get it.'),
  recent_models: z.array(z.string()).describe('Those with which it answered lately in this gateway, latest first.'),
  capabilities: capabilitiesSchema,
})
export type Agent = z.output<typeof agentSchema>

export const agentListSchema = z.object({ agents: z.array(agentSchema) })
export type AgentList = z.output<typeof agentListSchema>

export const defaultAgentSchema = z.object({
  agent_provider: providerSchema.describe('The agent of new projects of this gateway, until it starts again.'),
})
export type DefaultAgent = z.output<typeof defaultAgentSchema>

export const newDefaultAgentSchema = z.strictObject({ agent_provider: givenProviderSchema })
