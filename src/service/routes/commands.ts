import type { FastifyReply, FastifyRequest } from 'fastify'
import { STREAM_EVENT_NAMES } from '../../core/wire-names.js'
import { GatewayError } from '../../errors.js'
import * as api from '../api/commands.js'
import { projectParams } from '../api/projects.js'
import { streamQuery, streamResponse } from '../api/values.js'
import type { App, ServiceDependencies } from '../dependencies.js'
import { HTTP_CHANNEL } from '../http-channel.js'
import { routesOf } from '../route.js'
import { answerWithStream, readLastEventId, sendEventStream } from '../sse.js'
import { auditFor } from './changes.js'
import { type CommandRecord, findCommand, listCommands } from './command-records.js'
import { commandSummaries, commandView } from './command-view.js'
import { streamName } from './submit-command.js'

const NAMES = STREAM_EVENT_NAMES.filter((name) => name !== 'complete').map((name) => `\`${name}\``)
const STREAM_DESCRIPTION = `Server-sent events: ${NAMES.join(', ')} and, once and last, \`complete\`. Event ids count \
from 1 without gaps; with \`Last-Event-ID\` the stream continues after that id. 204 if no more events can follow.`

const streamSchema = {
  tags: ['streams'],
  description: STREAM_DESCRIPTION,
  querystring: streamQuery,
  headers: api.streamHeaders,
  response: { 200: streamResponse, 204: api.streamOverSchema },
}

export function registerCommandRoutes(app: App, dependencies: ServiceDependencies): void {
  const route = routesOf(app, 'commands')
  const { gateway, projects, now } = dependencies
  const { store, streams } = gateway

  route(
    'GET /projects/:id/commands',
    { scope: 'read' },
    'List the commands of a project, newest first',
    { params: projectParams, querystring: api.commandQuery, response: { 200: api.commandPageSchema } },
    async ({ params: { id }, query: { limit, before } }) => {
      const project = await projects.get(id)
      if (before !== undefined) await findCommand(store, project, before)
      const found = await listCommands(store, project, limit, before)
      const page = found.slice(0, limit)
      return {
        commands: await commandSummaries(gateway, id, page),
        next: found.length > limit ? (page.at(-1)?.id ?? null) : null,
      }
    },
  )

  route(
    'GET /projects/:id/commands/:commandId',
    { scope: 'read' },
    'Show a command with its result',
    { params: api.commandParams, response: { 200: api.commandSchema } },
    async ({ params: { id, commandId } }) => commandView(gateway, id, await find(id, commandId)),
  )

  route(
    'POST /projects/:id/commands/:commandId/cancel',
    { scope: 'run' },
    'Cancel a command; safe to repeat',
    { params: api.commandParams, response: { 200: api.cancelledSchema } },
    async (request) => {
      const { id, commandId } = request.params
      await find(id, commandId)
      const outcome = await gateway.cancel(commandId)
      const about = { action: 'command.cancel', subject: commandId, detail: id } as const
      if (outcome !== 'finished') await auditFor(request, now)(store, about)
      return { command_id: commandId, outcome }
    },
  )

  route(
    'GET /projects/:id/commands/:commandId/events',
    { scope: 'read', isStream: true },
    'Stream the events of a command',
    { ...streamSchema, params: api.commandParams },
    async (request, reply) => {
      const { id, commandId } = request.params
      await find(id, commandId)
      return stream(commandId, request, reply)
    },
  )

  route(
    'GET /projects/:id/streams/:streamId',
    { scope: 'read', isStream: true },
    'Stream the events of the command with this stream_id',
    { ...streamSchema, params: api.streamParams },
    async (request, reply) => {
      const { id, streamId } = request.params
      const commandId = await gateway.hostOf(HTTP_CHANNEL).recall(streamName(await projects.get(id), streamId))
      if (commandId === undefined) {
        const advice = 'Send a command with this stream_id to create it.'
        throw new GatewayError('not_found', `There is no stream ${streamId} in project ${id}. ${advice}`)
      }
      return stream(commandId, request, reply)
    },
  )

  async function find(projectId: string, commandId: string): Promise<CommandRecord> {
    return findCommand(store, await projects.get(projectId), commandId)
  }

  async function stream(commandId: string, { headers }: Pick<FastifyRequest, 'headers'>, reply: FastifyReply) {
    const after = readLastEventId(headers['last-event-id'])
    // Otherwise a client that has seen the end would reconnect forever.
    if (await streams.isOver(commandId, after)) {
      await reply.code(204).send()
      return
    }
    const follow = (signal: AbortSignal) => streams.follow(commandId, after, signal)
    await answerWithStream(reply, (response) => sendEventStream(response, follow), dependencies, { commandId })
  }
}
