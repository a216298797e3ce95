import { BACKEND_NAMES } from '../backends/types.js'
import { type CommandDescription, QUEUE_MODES } from '../channels/types.js'

/** In `/help` order. */
export const COMMANDS = [
  {
    name: 'ask',
    meaning: 'send a message to the agent, as without /ask',
    argument: { name: 'text', meaning: 'what the agent should do', isRequired: true, hasSuggestions: false },
    isQuestion: false,
  },
  { name: 'new', meaning: 'start a fresh session; also /clear', isQuestion: false },
  {
    name: 'compact',
    meaning: 'have the agent summarise its session to free up context, if it can',
    argument: { name: 'focus', meaning: 'what the summary should keep', isRequired: false, hasSuggestions: false },
    isQuestion: false,
  },
  { name: 'stop', meaning: 'stop what the agent is doing', isQuestion: false },
  { name: 'continue', meaning: 'let the agent continue after it paused at its step limit', isQuestion: false },
  {
    name: 'approve',
    meaning: 'allow what the agent asks for, once or always',
    argument: {
      name: 'which',
      meaning: 'always, or the id if several are waiting',
      isRequired: false,
      hasSuggestions: false,
    },
    isQuestion: false,
  },
  {
    name: 'deny',
    meaning: 'deny what the agent asks for',
    argument: { name: 'which', meaning: 'the id if several are waiting', isRequired: false, hasSuggestions: false },
    isQuestion: false,
  },
  { name: 'status', meaning: 'show what is going on here', isQuestion: true },
  {
    name: 'queue',
    meaning: `show what is waiting, or choose the mode: ${QUEUE_MODES.join(', ')}, or default`,
    argument: { name: 'mode', meaning: 'the mode, or default', isRequired: false, hasSuggestions: true },
    isQuestion: false,
  },
  {
    name: 'model',
    meaning: 'show or choose the model; default resets it',
    argument: { name: 'name', meaning: 'the model, or default', isRequired: false, hasSuggestions: true },
    isQuestion: false,
  },
  {
    name: 'backend',
    meaning: `show or choose the agent: ${BACKEND_NAMES.join(', ')}; default resets it`,
    argument: { name: 'name', meaning: 'the agent, or default', isRequired: false, hasSuggestions: true },
    isQuestion: false,
  },
  { name: 'sessions', meaning: 'list recent sessions of this project', isQuestion: true },
  {
    name: 'resume',
    meaning: 'resume an earlier session',
    argument: { name: 'session', meaning: 'its number or id', isRequired: true, hasSuggestions: true },
    isQuestion: false,
  },
  {
    name: 'project',
    meaning: 'show or choose the project; default resets it',
    argument: { name: 'id', meaning: 'the project, or default', isRequired: false, hasSuggestions: true },
    isQuestion: false,
  },
  {
    name: 'allow',
    meaning: 'let someone in on Discord or WhatsApp, or list who was let in; owner only',
    argument: {
      name: 'person',
      meaning: 'who to let in; omit to list',
      isRequired: false,
      hasSuggestions: false,
      isPerson: true,
    },
    isQuestion: false,
  },
  {
    name: 'disallow',
    meaning: 'revoke access given with /allow',
    argument: {
      name: 'person',
      meaning: 'whose access to revoke',
      isRequired: false,
      hasSuggestions: false,
      isPerson: true,
    },
    isQuestion: false,
  },
  { name: 'usage', meaning: 'show turns, time, tokens and cost', isQuestion: true },
  { name: 'help', meaning: 'show this list', isQuestion: true },
] as const satisfies CommandDescription[]

/** Commands that reach the agent as messages. */
export const MESSAGE_COMMANDS = ['ask', 'compact'] as const satisfies (typeof COMMANDS)[number]['name'][]

export type CommandName = (typeof COMMANDS)[number]['name']

export const HELP_TEXT = COMMANDS.map((command) => {
  if (!('argument' in command)) return `/${command.name}: ${command.meaning}`
  const { name, isRequired } = command.argument
  return `/${command.name} ${isRequired ? `<${name}>` : `[${name}]`}: ${command.meaning}`
}).join('\n')
