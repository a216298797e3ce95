// What is run for a message: a turn of an agent, or a command.

import { resolveBackendName } from './backends/registry.js'
import type { BackendName, SecretFile } from './backends/types.js'
import type { Channel } from './channels/types.js'
import type { GatewayConfig } from './config.js'
import type { CredentialStore } from './credentials/credential-store.js'
import { GatewayError } from './errors.js'
import type { Work } from './queue/queue.js'
import type { TurnPlan } from './queue/worker.js'
import { chooseAgent } from './runtime/agent-choice.js'
import type { AgentRuntime } from './runtime/agent-runtime.js'
import { commandRunner, type CommandRuntime } from './runtime/command-runtime.js'
import type { Project } from './store/projects.js'

/** A message's turn of its agent. Contract: throws for what the person or the operator must put right. */
export function planTurn(
  work: Work,
  config: GatewayConfig,
  runtimes: ReadonlyMap<BackendName, AgentRuntime>,
  channels: Channel[],
  credentials: CredentialStore,
): TurnPlan {
  const { conversation, message, project, wasInterrupted } = work
  const { projectId } = conversation
  if (projectId !== undefined && !project) {
    throw new GatewayError('not_found', `The project ${projectId} of this conversation is not known.`)
  }
  const { options = {} } = message
  const { backend: name, model: chosen } = chooseAgent(conversation, project, config)
  const model = options.model ?? chosen
  const allowedTools = options.allowedTools ?? project?.allowedTools
  const timeoutMs = options.timeoutMs ?? project?.queryTimeoutMs
  const backend = resolveBackendName(name)
  const runtime = runtimes.get(backend)
  if (!runtime) throw new GatewayError('backend_unknown', `The agent ${backend} is not there.`)
  const directory = project?.directory ?? config.workingDir
  const canSendFiles = channels.some(({ name: channel, takesFiles }) => channel === conversation.channel && takesFiles)
  return {
    backend,
    ...(model !== undefined && { model }),
    directory,
    canSendFiles,
    run: async (runId, signal, listener) =>
      runtime.runTurn(
        {
          ...(await secretsFor(project, credentials)),
          ...(project?.isUntrusted && { isUntrusted: true }),
          channelId: conversation.id,
          prompt: message.text,
          kind: message.kind,
          runId,
          wasInterrupted,
          ...(model !== undefined && { model }),
          workingDir: directory,
          canSendFiles,
          ...(allowedTools && { allowedTools }),
          ...(timeoutMs !== undefined && { timeoutMs }),
          ...(options.metadata && { metadata: options.metadata }),
          ...(project?.maxTurns !== undefined && { maxTurns: project.maxTurns }),
        },
        signal,
        listener,
      ),
  }
}

/** Contract: throws when an earlier attempt was cut off, since nobody knows how far that one came. */
export function planCommand(
  { conversation, message, project, wasInterrupted }: Work,
  argv: string[],
  config: GatewayConfig,
  runtime: CommandRuntime,
  credentials: CredentialStore,
): TurnPlan {
  if (!project) {
    throw new GatewayError('not_found', `The project ${conversation.projectId} of this command is not known.`)
  }
  if (wasInterrupted) {
    const advice = 'Look what is done already, then send it as a new command.'
    throw new GatewayError('request_invalid', `The gateway ended while the command ran, so it was cut off. ${advice}`)
  }
  const { directory, isUntrusted, queryTimeoutMs } = project
  const timeoutMs = message.options?.timeoutMs ?? queryTimeoutMs ?? config.queryTimeoutMs
  return {
    backend: commandRunner(argv),
    directory,
    canSendFiles: false,
    run: async (runId, signal, { onEvent }) => {
      const secrets = await secretsFor(project, credentials)
      const request = { argv, directory, runId, timeoutMs, ...secrets, ...(isUntrusted && { isUntrusted }) }
      return { result: await runtime.run(request, signal, onEvent), notes: [], isFinal: true }
    },
  }
}

/** What a run gets of the credential store, for itself alone. */
async function secretsFor(
  project: Project | undefined,
  credentials: CredentialStore,
): Promise<{ environment: Record<string, string>; secretFiles: SecretFile[] }> {
  const values = await credentials.valuesFor(project?.id)
  return {
    environment: Object.fromEntries(
      values.filter(({ kind }) => kind === 'variable').map(({ name, value }) => [name, value]),
    ),
    secretFiles: values
      .filter(({ kind }) => kind === 'file')
      .map(({ name, value }) => ({ variable: name, content: value })),
  }
}
