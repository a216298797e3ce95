// The gateway's side of the channel contract, the same for every channel.

import { randomUUID } from 'node:crypto'
import type { Acceptance, ChannelHost, ChannelMessage, MessageOptions, Place } from '../channels/types.js'
import type { Answer } from '../conversation/answer.js'
import { COMMANDS } from '../conversation/command-descriptions.js'
import type { GatewayConfig } from '../config.js'
import type { ConversationCommands } from '../conversation/conversation-commands.js'
import { type SavedFiles, saveIncomingFiles } from '../media/inbox-files.js'
import { locateOutgoingFile, openOutgoing, type SendingRules } from '../media/outgoing-files.js'
import { startDeadline } from '../core/async.js'
import { oneLine } from '../core/one-line.js'
import { isAgentCommand } from './agent-command.js'
import type { Admit, Queue } from './queue.js'
import type { Audience } from './audience.js'
import type { Sender } from './deliver.js'
import type { Step } from './types.js'
import type { Worker } from './work.js'
import { describePod } from '../kubernetes/types.js'
import { chooseWorkplace, type Workplace } from '../runtime/agent-choice.js'
import type { HookManager } from '../runtime/hook-manager.js'
import type { AuditAction } from '../store/audit.js'
import type { Store, Tables } from '../store/store.js'

interface HostDependencies {
  config: Pick<GatewayConfig, 'home' | 'workingDir' | 'inbound' | 'attachmentMaxMb' | 'attachmentTypes' | 'mediaRoots'>
  store: Store
  queue: Queue
  worker: Pick<Worker, 'accept' | 'endMessage'>
  commands: ConversationCommands
  hooks: Pick<HookManager, 'fire'>
  sender: Pick<Sender, 'wake'>
  audience: Pick<Audience, 'accepted' | 'undelivered'>
  onStep?(step: Step): void
  /** Called when there may be work or a reply to send. */
  wake(): void
  now: () => number
}

/** Limit for fetching all files of one message. */
const FETCH_TIMEOUT_MS = 60_000
const MAX_NAME_CHARACTERS = 100

const ASK = /^\/ask(?:\s+|$)/i

/** Whether a line is for the gateway rather than the agent: `/stop`, but not `/etc/hosts is empty`. */
export function isCommand(line: string): boolean {
  return /^\/[a-z]+(?:\s|$)/i.test(line) && !ASK.test(line) && !isAgentCommand(line)
}

/** The message without a leading `/ask`. */
export function withoutAskPrefix(line: string): string {
  return line.replace(ASK, '')
}

/** The host for the gateway's own parts. */
export interface GatewayHost extends ChannelHost {
  onMessage(message: ChannelMessage, admit?: Admit): Promise<Acceptance>
  /** Like `onCommand`, but also returns the message that the command sent for the person. */
  runCommand(place: Place, author: string, line: string): Promise<Pick<Answer, 'text' | 'messageId'>>
}

export function channelHost(channel: string, dependencies: HostDependencies): GatewayHost {
  const { config, store, queue, worker, sender, commands, hooks, audience, onStep, wake, now } = dependencies

  /** Saves a message's files in its agent's directory and lists them in its text. */
  const withFiles = async (message: ChannelMessage): Promise<Omit<SavedFiles, 'lines'> & { text: string }> => {
    const { files = [], platformId } = message
    const text = withoutAskPrefix(message.text)
    if (files.length === 0) return { text, notes: [] }
    const { directory, pod } = await workplaceOf(message)
    if (pod) {
      const names = files.map(({ name }) => JSON.stringify(oneLine(name, MAX_NAME_CHARACTERS))).join(', ')
      const reason = `The agent works in ${describePod(pod)}, which cannot receive files yet`
      return { text, notes: [`Not passed on: ${names}. ${reason}. Copy them there yourself and name their paths.`] }
    }
    const tooLate = new Error(`it took longer than ${FETCH_TIMEOUT_MS / 1000} s`)
    const deadline = startDeadline(FETCH_TIMEOUT_MS, undefined, tooLate)
    try {
      const { lines, ...saved } = await saveIncomingFiles(files, {
        directory,
        messageId: platformId,
        maxBytes: config.attachmentMaxMb * 1024 * 1024,
        types: config.attachmentTypes,
        signal: deadline.signal,
      })
      return { text: [text, ...lines].filter((part) => part !== '').join('\n'), ...saved }
    } finally {
      deadline.clear()
    }
  }

  const workplaceOf = async (place: Place): Promise<Workplace> => {
    const { projectId } = await store.conversations.enter({ ...place, channel }, randomUUID(), now())
    const project = projectId === undefined ? undefined : await store.projects.get(projectId)
    return chooseWorkplace(channel, project, config)
  }

  const sendingRules = (): SendingRules => ({ roots: config.mediaRoots, denied: [config.home] })

  /** Makes the change and its audit entry in one transaction. */
  const audited = (
    action: AuditAction,
    personId: string,
    actor: string,
    change: (tables: Tables) => Promise<boolean>,
  ): Promise<boolean> =>
    store.transaction(async (tables) => {
      const isChanged = await change(tables)
      if (isChanged) await tables.audit.add({ at: now(), actor, action, subject: `${channel}/${personId}` })
      return isChanged
    })

  const runCommand: GatewayHost['runCommand'] = async (place, author, line) => {
    const answer = await commands.run(channel, place, author, line)
    wake()
    return answer
  }

  return {
    onMessage: async (message, admit) => {
      const { files: _, options, ...rest } = message
      // A redelivered message needs no second download.
      const isKnown = message.files && (await store.inbox.findByPlatformId(channel, message.platformId)) !== undefined
      const { text, notes, first } = isKnown
        ? { text: message.text, notes: [], first: undefined }
        : await withFiles(message)
      // Without text or usable files nothing is left to ask the agent.
      const objection = text === '' && notes.length > 0 ? notes.join('\n') : undefined
      const acceptance = await worker.accept(
        { ...rest, ...(options && { options: withMedia(options, first) }), text, channel },
        { objection, admit },
      )
      onStep?.('accepted')
      audience.accepted(acceptance)
      if (acceptance.status === 'accepted' && acceptance.interrupts !== undefined)
        worker.endMessage(acceptance.interrupts)
      if (acceptance.status === 'refused') sender.wake()
      const { status, messageId, conversationId } = acceptance
      if (status !== 'duplicate') hooks.fire('message-received', { messageId, conversationId, channel, status })
      return acceptance.status === 'accepted' ? { ...acceptance, notes: [...acceptance.notes, ...notes] } : acceptance
    },

    isKnown: async (platformId) => (await store.inbox.findByPlatformId(channel, platformId)) !== undefined,

    onEdit: async (message) => {
      if (!(await store.inbox.findByPlatformId(channel, message.platformId))) return 'unknown'
      return queue.edit(channel, message.platformId, (await withFiles(message)).text)
    },

    onDelete: async (platformId) => {
      const message = await store.inbox.findByPlatformId(channel, platformId)
      // Dead letters belong to the operator, even if the original message is deleted.
      if (message?.state !== 'open') return
      await queue.drop(message.id)
      wake()
    },

    commands: () => [...COMMANDS],

    isCommand,

    runCommand,

    onCommand: async (place, author, line) => (await runCommand(place, author, line)).text,

    suggest: (place, command, typed) => commands.suggest(channel, place, command, typed),

    onButton: async (action, messageId, author) => {
      const answer = await commands.button(action, messageId, author)
      wake()
      return answer
    },

    say: async (place, text, author, key) => {
      await queue.say({ ...place, channel }, text, author, key)
      wake()
    },

    openFile: (file, maxBytes, signal) => openOutgoing(file, sendingRules(), maxBytes, signal),
    locateFile: (file) => locateOutgoingFile(file, sendingRules()),

    onUndelivered: async (id, problem) => {
      const delivery = await queue.failDelivery(id, problem)
      if (delivery) audience.undelivered(delivery)
    },

    claim: (name) => store.channelValues.claim(channel, name, now()),
    isClaimed: (name) => store.channelValues.isClaimed(channel, name),
    admissions: {
      has: (personId) => store.admissions.has(channel, personId),
      list: () => store.admissions.list(channel),
      add: ({ id: personId, name }, by) =>
        audited('access.allow', personId, by, ({ admissions }) =>
          admissions.add({ channel, personId, name, admittedBy: by, admittedAt: now() }),
        ),
      remove: (personId, by) =>
        audited('access.disallow', personId, by, ({ admissions }) => admissions.remove(channel, personId)),
    },
    recall: (name) => store.channelValues.get(channel, name),
    remember: (name, value) => store.channelValues.set(channel, name, value),
    addresses: (since) => store.conversations.addresses(channel, since),
  }
}

/** For command templates, which only some channels support. */
function withMedia(options: MessageOptions, file: SavedFiles['first']): MessageOptions {
  const { variables } = options
  if (!variables || !file) return options
  return { ...options, variables: { ...variables, MediaPath: file.path, MediaType: file.type } }
}
