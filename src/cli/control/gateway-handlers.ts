import { randomUUID } from 'node:crypto'
import { MAX_OPEN_QUESTIONS } from '../../approvals/approval-service.js'
import { inputText } from '../../approvals/approval-words.js'
import { pathOf } from '../../approvals/asked-input.js'
import type { TerminalChannel } from '../../channels/terminal.js'
import type { ChannelHost, OutgoingFile, Place } from '../../channels/types.js'
import { type GatewayConfig, projectOfChannel } from '../../config.js'
import { choiceOf } from '../../conversation/conversation-choice.js'
import { defined } from '../../core/defined.js'
import { shownAgent } from '../../core/demo-agent.js'
import { GatewayError, messageOf } from '../../errors.js'
import type { Gateway } from '../../gateway.js'
import { localFile } from '../../media/local-file.js'
import { describeWorkplace } from '../../runtime/agent-choice.js'
import type { HttpServer } from '../../service/server.js'
import type { Approval } from '../../store/approvals.js'
import type { Message } from '../../store/inbox.js'
import type { Delivery } from '../../store/outbox.js'
import { operations } from './operations.js'
import type { ChatPlace, Handlers, HistoryEntry, OpenQuestion, ShownFile } from './protocol.js'

/** Messages in a history are truncated to this; their author knows the rest. */
const MESSAGE_CHARACTERS = 2_000

type FileLocator = Pick<ChannelHost, 'locateFile'>

/** What a running gateway offers over its socket. */
export function gatewayHandlers(
  gateway: Gateway,
  terminal: TerminalChannel,
  config: GatewayConfig,
  now: () => number,
  /** Absent without the HTTP API. */
  dashboard?: Pick<HttpServer, 'url' | 'loginLink'>,
): Handlers {
  const { store, scheduler } = gateway
  const host = gateway.hostOf(terminal.name)
  const startedAt = now()
  const placeOf = (address: string): Place => defined({ address, projectId: config.defaultProject })

  const shared = operations({ ...gateway, now })

  return {
    ...shared,

    status: async () => {
      const { agentBackend: backend } = config
      return defined({ id: gateway.id, pid: process.pid, startedAt, backend, dashboardUrl: dashboard?.url })
    },

    'dashboard.link': async () => {
      if (dashboard) return dashboard.loginLink()
      const advice = 'Remove HTTP_ENABLED=false and restart the gateway.'
      throw new GatewayError('http_unavailable', `The HTTP API and the dashboard are turned off. ${advice}`)
    },

    'chat.attach': async ({ address, projectId }, peer) => {
      if (projectId !== undefined) await chooseProject(gateway, terminal.name, address, projectId, now)
      const detach = terminal.attach(address, {
        onEvent: (event) => peer.push({ kind: 'event', ...event }),
        onRetry: (next) => peer.push({ kind: 'retry', ...next }),
        onReply: async ({ files, ...reply }) => {
          const message = reply.messageId === undefined ? undefined : await store.inbox.get(reply.messageId)
          const shownFiles = await showFiles(files, host)
          peer.push({ kind: 'reply', ...reply, shownFiles, isLast: message?.state !== 'open' })
        },
      })
      peer.onClose(detach)
      return {}
    },

    'chat.history': async ({ address, afterSeq, limit }) => {
      const conversation = await store.conversations.find(terminal.name, address)
      if (!conversation) return { entries: [] }
      // Messages first: then every message seen as answered has its reply.
      const messages = await store.inbox.history(conversation.id, limit, afterSeq)
      const replies = await store.outbox.history(conversation.id, limit, afterSeq)
      const answers = await Promise.all(replies.map((reply) => replyEntry(reply, host)))
      const entries = [...messages.map(messageEntry), ...answers].toSorted((a, b) => a.seq - b.seq)
      return { entries: entries.slice(-limit) }
    },

    'chat.send': async ({ files = [], ...message }) => {
      const attached = await Promise.all(files.map(localFile))
      return host.onMessage({
        ...message,
        ...placeOf(message.address),
        ...(attached.length > 0 && { files: attached }),
      })
    },

    'chat.place': ({ address }) => chatPlace(gateway, config, terminal.name, placeOf(address)),

    'chat.questions': async ({ address }) => {
      const conversation = await store.conversations.find(terminal.name, address)
      if (!conversation) return { questions: [] }
      const wanted = { states: ['asked' as const], conversationId: conversation.id }
      return {
        questions: (await store.approvals.list(wanted, MAX_OPEN_QUESTIONS))
          .map((approval) => openQuestion(approval, config))
          .toReversed(),
      }
    },

    'chat.suggest': async ({ address, command, typed }) => ({
      suggestions: await host.suggest(placeOf(address), command, typed),
    }),

    'event.send': async ({ kind, text }) => {
      const { outputChannelId: address, discordBotToken } = config
      if (address === undefined || discordBotToken === undefined) {
        const advice = 'Set DISCORD_BOT_TOKEN, and OUTPUT_CHANNEL_ID to a Discord channel'
        throw new GatewayError('config_invalid', `There is nowhere to send the answer. ${advice}.`)
      }
      const place = defined({ address, projectId: projectOfChannel(config, address) })
      const message = { ...place, platformId: `event:${randomUUID()}`, author: kind, kind, text }
      return gateway.hostOf('discord').onMessage(message)
    },

    'heartbeat.run': ({ isForced }) => scheduler.runHeartbeat(isForced),

    'cron.add': async (request, peer) => {
      scheduler.requireTarget(request.to)
      return shared['cron.add'](request, peer)
    },

    'cron.run': ({ job }) => scheduler.runCronJob(job),

    send: ({ to, text }) => scheduler.say(to, text),

    'chat.command': async ({ address, author, line }) => {
      const { text: answer, messageId } = await host.runCommand(placeOf(address), author, line)
      return defined({ answer, messageId })
    },
  }
}

async function chatPlace(
  { agents, store }: Gateway,
  config: GatewayConfig,
  channel: string,
  { address, projectId: assigned }: Place,
): Promise<ChatPlace> {
  const conversation = await store.conversations.find(channel, address)
  const projectId = conversation?.projectId ?? assigned
  const choice = await choiceOf({ config, agents, store }, { channel, ...conversation, ...defined({ projectId }) })
  const { backend, model, workplace } = choice
  return defined({
    backend,
    isDemo: config.isDemoAgent && backend === config.agentBackend,
    model,
    projectId,
    workplace: describeWorkplace(workplace),
    directory: workplace.pod ? undefined : workplace.directory,
  })
}

function openQuestion(approval: Approval, config: GatewayConfig): OpenQuestion {
  const { id, messageId, toolName, summary, subject, deadline } = approval
  const backend = shownAgent(approval.backend, config)
  const remembers = subject === undefined ? undefined : pathOf(approval) ? ('file' as const) : ('call' as const)
  return defined({ id, messageId, backend, toolName, summary, request: inputText(approval), remembers, deadline })
}

async function chooseProject(
  { store }: Gateway,
  channel: string,
  address: string,
  projectId: string,
  now: () => number,
): Promise<void> {
  if (!(await store.projects.get(projectId))) {
    const known = (await store.projects.list()).map(({ id }) => id).join(', ') || 'none yet'
    const advice = `Known: ${known}. "aetheel projects create" creates one.`
    throw new GatewayError('not_found', `There is no project ${projectId}. ${advice}`)
  }
  const conversation = await store.conversations.find(channel, address)
  const id = conversation?.id ?? (await store.conversations.enter({ channel, address }, randomUUID(), now())).id
  await store.conversations.configure(id, { projectId })
}

function messageEntry({ seq, id, receivedAt, author, text, state }: Message): HistoryEntry {
  return { kind: 'message', seq, id, at: receivedAt, author, text: text.slice(0, MESSAGE_CHARACTERS), state }
}

async function replyEntry(delivery: Delivery, host: FileLocator): Promise<HistoryEntry> {
  const { seq, id, createdAt, messageId } = delivery
  const { files, ...reply } = delivery.reply
  const shownFiles = await showFiles(files, host)
  return { kind: 'reply', seq, id, at: createdAt, ...defined({ messageId }), ...reply, shownFiles }
}

/** The reader is on this machine, so a path is enough. */
async function showFiles(files: OutgoingFile[] = [], host: FileLocator): Promise<ShownFile[]> {
  return Promise.all(
    files.map(async (file) => {
      if ('url' in file) return { place: file.url }
      try {
        return { place: await host.locateFile(file) }
      } catch (error) {
        return { problem: messageOf(error) }
      }
    }),
  )
}
