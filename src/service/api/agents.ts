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
    .describe('The models that its command line lists; others may work too. Empty if it lists none.'),
  default_model: z.string().nullable().describe('The configured model; if null, the agent chooses.'),
  default_max_turns: z
    .number()
    .nullable()
    .describe('The turn limit of a message in a project without max_turns: BACKEND_MAX_TURNS. Null if unlimited.'),
  max_prompt_length: z.number().describe("The agent's own limit; 0 if none is known."),
})

export const agentLoginSchema = z.object({
  state: z.enum(['logged-in', 'logged-out', 'unknown']),
  how: z.string().nullable().describe('What logs it in, such as the name of a variable.'),
  why: z.string().nullable().describe('Why the state is unknown.'),
  fix: z.string().describe("The command to log in (again), on the gateway's machine."),
  next: z.string().nullable().describe('What to do in the program that this command starts.'),
})

export const agentSchema = z.object({
  provider: providerSchema,
  is_demo: z.boolean().describe('Whether the built-in demo agent replaces it. The demo agent uses no model.'),
  status: z.enum(['available', 'unavailable']).describe('Whether it can be used. If not, `problems` says why.'),
  path: z
    .string()
    .nullable()
    .describe('The path of its command line, or the address of its server; null if it is not installed.'),
  version: z.string().nullable().describe('As its command line reports it; null if it reported none in time.'),
  install: z
    .string()
    .nullable()
    .describe('The command that installs it if it is missing, or its latest version if it is too old.'),
  login: agentLoginSchema
    .nullable()
    .describe(
      'Whether it is logged in, as far as known without calling its model; null if it is missing or needs no login.',
    ),
  model: z
    .string()
    .nullable()
    .describe('The model of turns that choose none, if the configuration or its own settings name it.'),
  problems: z.array(z.string()).describe('What an operator should know or do.'),
  mode: z
    .enum(['live', 'oneshot'])
    .nullable()
    .describe(
      '`live`: its process stays warm between turns, unless a project prevents it; `oneshot`: each turn is a cold start. Null if it is missing.',
    ),
  why_not_live: z.string().nullable().describe('Why its process does not stay warm, although that is enabled.'),
  is_default: z.boolean().describe('Whether it is the default for new projects.'),
  recent_models: z
    .array(z.string())
    .describe('The models with which it recently answered in this gateway, latest first.'),
  capabilities: capabilitiesSchema,
})
export type Agent = z.output<typeof agentSchema>

export const agentListSchema = z.object({ agents: z.array(agentSchema) })
export type AgentList = z.output<typeof agentListSchema>

export const defaultAgentSchema = z.object({
  agent_provider: providerSchema.describe(
    'The default agent for new projects. A change lasts until this gateway restarts.',
  ),
})
export type DefaultAgent = z.output<typeof defaultAgentSchema>

export const newDefaultAgentSchema = z.strictObject({ agent_provider: givenProviderSchema })
