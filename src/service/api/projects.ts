// Projects, templates and credentials.

import { z } from 'zod'
import { PERMISSIONS } from '../../backends/types.js'
import { podSchema } from '../../config/kubernetes.js'
import { capabilitiesSchema } from './agents.js'
import {
  givenProviderSchema,
  modelSchema,
  nameSchema,
  providerSchema,
  timeoutSchema,
  timeSchema,
  toolsSchema,
} from './values.js'

export const projectParams = z.object({ id: nameSchema.describe('The id of the project.') })

export const projectPodSchema = z.object({
  context: z.string().nullable(),
  namespace: z.string().nullable(),
  name: z.string().nullable(),
  selector: z.string().nullable(),
  container: z.string().nullable(),
})

export const projectSchema = z.object({
  id: z.string(),
  name: z.string(),
  directory: z.string().describe('Of the pod, where there is one.'),
  pod: projectPodSchema.nullable().describe('The pod in which the agent and commands run; null for this machine.'),
  is_default: z.boolean().describe('Whether conversations that have no other project work in it.'),
  source: z
    .enum(['file', 'api', 'cluster'])
    .describe(
      '`file`: the configuration file says what it is; `api`: it was made here; `cluster`: the labels of its pod say that it is there, and which agent it has.',
    ),
  agent_provider: providerSchema.describe(
    'Who answers: where the agent of the project is not registered, the default one.',
  ),
  agent_capabilities: capabilitiesSchema,
  model: z.string().nullable(),
  allowed_tools: z.array(z.string()).nullable(),
  timeout: z.number().nullable().describe('In seconds.'),
  max_turns: z.number().nullable().describe('Null: `default_max_turns` of its agent.'),
  is_untrusted: z.boolean().describe('Whether nothing in its directory may configure the agent, or run by itself.'),
  agent_permissions: z
    .enum(PERMISSIONS)
    .nullable()
    .describe('Whether a person is asked before the agent uses a tool; null: as the gateway has it.'),
  created_at: timeSchema,
  updated_at: timeSchema,
})
export type Project = z.output<typeof projectSchema>

export const projectListSchema = z.object({ projects: z.array(projectSchema) })
export type ProjectList = z.output<typeof projectListSchema>

const turnsSchema = z.number().int().min(1).max(1_000_000)

export const newProjectSchema = z.strictObject({
  id: z.string().optional().describe('Left out, made from the name.'),
  name: z.string().optional(),
  directory: z
    .string()
    .optional()
    .describe(
      'One that is there, as an absolute path inside the project roots; with `pod`, a path in there, by default /workspace.',
    ),
  git: z
    .strictObject({ url: z.string().max(2_000), ref: z.string().max(300).optional() })
    .optional()
    .describe('A repository to clone.'),
  template: z
    .union([z.string(), z.strictObject({ name: z.string(), variables: z.record(z.string(), z.string()).optional() })])
    .optional()
    .describe('One of GET /templates: its name, or its name and variables.'),
  pod: podSchema.optional().describe('The pod in which the agent and commands run, by kubectl exec.'),
  agent_provider: givenProviderSchema.optional().describe('Left out, that of GET /agents/default.'),
  model: modelSchema.optional(),
  allowed_tools: toolsSchema.optional(),
  timeout: timeoutSchema.optional(),
  max_turns: turnsSchema.optional(),
  is_untrusted: z.boolean().optional(),
  agent_permissions: z.enum(PERMISSIONS).optional().describe('Left out, as the gateway has it.'),
})
export type NewProject = z.input<typeof newProjectSchema>

export const projectChangesSchema = z
  .strictObject({
    name: z.string().nullable().optional(),
    agent_provider: givenProviderSchema.optional(),
    model: modelSchema.nullable().optional(),
    allowed_tools: toolsSchema.nullable().optional(),
    timeout: timeoutSchema.nullable().optional(),
    max_turns: turnsSchema.nullable().optional(),
    is_untrusted: z.boolean().optional(),
    agent_permissions: z.enum(PERMISSIONS).nullable().optional(),
  })
  .describe('What is left out stays; null takes a setting back. Another agent begins new sessions.')
export type ProjectChanges = z.input<typeof projectChangesSchema>

export const removeProjectQuery = z.object({
  delete_files: z.stringbool().default(false).describe('Whether its files go, too; only those that were made with it.'),
})

export const projectFilesQuery = z.object({
  query: z.string().max(300).default('').describe('What was typed so far.'),
})

export const projectFilesSchema = z.object({
  files: z.array(z.string()).describe('From the directory of the project, best first; a directory ends with a slash.'),
  reason: z.string().nullable().describe('Why there can be none.'),
})
export type ProjectFiles = z.output<typeof projectFilesSchema>

export const templateVariableSchema = z.object({
  name: z.string(),
  description: z.string(),
  default: z.string().nullable(),
  pattern: z.string().nullable().describe('A regular expression that the whole value must match.'),
})

export const templateSchema = z.object({
  name: z.string(),
  description: z.string(),
  is_built_in: z.boolean(),
  variables: z.array(templateVariableSchema),
})
export type Template = z.output<typeof templateSchema>

export const templateListSchema = z.object({ templates: z.array(templateSchema) })
export type TemplateList = z.output<typeof templateListSchema>

export const credentialSchema = z.object({
  name: z.string(),
  kind: z.enum(['variable', 'file']).describe('How agents get it: as a variable, or as a file that a variable names.'),
  project_id: z.string().nullable().describe('Null: all projects get it.'),
  created_at: timeSchema,
  updated_at: timeSchema,
})
/** Without its value, which is never returned. */
export type Credential = z.output<typeof credentialSchema>

export const credentialListSchema = z.object({
  credentials: z.array(credentialSchema).describe('Values are never told.'),
})
export type CredentialList = z.output<typeof credentialListSchema>

export const allProjectsParams = z.object({})

export const credentialParams = z.object({
  name: z.string().min(1).max(100).describe('The variable that agents find it in.'),
})

export const newCredentialSchema = z.strictObject({
  value: z.string(),
  kind: z.enum(['variable', 'file']).default('variable'),
})
export type NewCredential = z.input<typeof newCredentialSchema>

export const rotatedSchema = z.object({ count: z.number().describe('How many there are.') })
export type Rotated = z.output<typeof rotatedSchema>
