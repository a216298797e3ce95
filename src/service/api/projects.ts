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
  directory: z.string().describe('In the pod, if there is one.'),
  pod: projectPodSchema
    .nullable()
    .describe("The pod in which the agent and commands run; null for the gateway's machine."),
  is_default: z.boolean().describe('Whether conversations without another project use it.'),
  source: z
    .enum(['file', 'api', 'cluster'])
    .describe(
      '`file`: the configuration file defines it; `api`: it was created in this gateway; `cluster`: the labels of its pod define it and its agent.',
    ),
  agent_provider: providerSchema.describe(
    "The agent that answers: the project's, or the default agent if that is not registered.",
  ),
  agent_capabilities: capabilitiesSchema,
  model: z.string().nullable(),
  allowed_tools: z.array(z.string()).nullable(),
  timeout: z.number().nullable().describe('In seconds.'),
  max_turns: z.number().nullable().describe('Null for `default_max_turns` of its agent.'),
  is_untrusted: z.boolean().describe('If true, nothing in its directory may configure the agent or run automatically.'),
  agent_permissions: z
    .enum(PERMISSIONS)
    .nullable()
    .describe("Whether the agent asks a person before it uses a tool; null for the gateway's setting."),
  created_at: timeSchema,
  updated_at: timeSchema,
})
export type Project = z.output<typeof projectSchema>

export const projectListSchema = z.object({ projects: z.array(projectSchema) })
export type ProjectList = z.output<typeof projectListSchema>

const turnsSchema = z.number().int().min(1).max(1_000_000)

export const newProjectSchema = z.strictObject({
  id: z.string().optional().describe('By default, derived from the name.'),
  name: z.string().optional(),
  directory: z
    .string()
    .optional()
    .describe(
      'An existing directory, as an absolute path inside the project roots; with `pod`, a path in the pod, by default /workspace.',
    ),
  git: z
    .strictObject({ url: z.string().max(2_000), ref: z.string().max(300).optional() })
    .optional()
    .describe('A repository to clone.'),
  template: z
    .union([z.string(), z.strictObject({ name: z.string(), variables: z.record(z.string(), z.string()).optional() })])
    .optional()
    .describe('A template from GET /templates: its name, or its name and variables.'),
  pod: podSchema.optional().describe('The pod in which the agent and commands run, with kubectl exec.'),
  agent_provider: givenProviderSchema.optional().describe('Default: that of GET /agents/default.'),
  model: modelSchema.optional(),
  allowed_tools: toolsSchema.optional(),
  timeout: timeoutSchema.optional(),
  max_turns: turnsSchema.optional(),
  is_untrusted: z.boolean().optional(),
  agent_permissions: z.enum(PERMISSIONS).optional().describe("Default: the gateway's setting."),
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
  .describe('Omitted settings stay unchanged; null resets one. Another agent starts new sessions.')
export type ProjectChanges = z.input<typeof projectChangesSchema>

export const removeProjectQuery = z.object({
  delete_files: z
    .stringbool()
    .default(false)
    .describe('Whether to delete its files too. Only files that were created with it are deleted.'),
})

export const projectFilesQuery = z.object({
  query: z.string().max(300).default('').describe('The text typed so far.'),
})

export const projectFilesSchema = z.object({
  files: z
    .array(z.string())
    .describe('Relative to the project directory, best match first; a directory ends with a slash.'),
  reason: z.string().nullable().describe('Why none can be listed.'),
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
  kind: z
    .enum(['variable', 'file'])
    .describe('How agents get it: in an environment variable, or in a file that the variable names.'),
  project_id: z.string().nullable().describe('Null if all projects get it.'),
  created_at: timeSchema,
  updated_at: timeSchema,
})
/** Without its value, which is never returned. */
export type Credential = z.output<typeof credentialSchema>

export const credentialListSchema = z.object({
  credentials: z.array(credentialSchema).describe('Values are never returned.'),
})
export type CredentialList = z.output<typeof credentialListSchema>

export const allProjectsParams = z.object({})

export const credentialParams = z.object({
  name: z.string().min(1).max(100).describe('The environment variable through which agents get it.'),
})

export const newCredentialSchema = z.strictObject({
  value: z.string(),
  kind: z.enum(['variable', 'file']).default('variable'),
})
export type NewCredential = z.input<typeof newCredentialSchema>

export const rotatedSchema = z.object({ count: z.number().describe('The number of credentials.') })
export type Rotated = z.output<typeof rotatedSchema>
