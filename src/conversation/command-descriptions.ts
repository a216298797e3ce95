import { BACKEND_NAMES } from '../backends/types.js'
import { type CommandDescription, QUEUE_MODES } from '../channels/types.js'

/** In `/help` order. */
export const COMMANDS = [
  {
    name: 'ask',
    meaning: 'the same as a message without /ask',
    argument: { name: 'text', meaning: 'what the agent should do', isRequired: true, hasSuggestions: false },
    isQuestion: false,
  },
  { name: 'new', meaning: 'begin a fresh session; also /clear', isQuestion: false },
  {
    name: 'compact',
    meaning: 'let the agent sum up its session to make room, where it can do that on request',
    argument: { name: 'focus', meaning: 'what to keep above all', isRequired: false, hasSuggestions: false },
    isQuestion: false,
  },
  { name: 'stop', meaning: 'end what the agent is doing', isQuestion: false },
  { name: 'continue', meaning: 'let the agent go on after it has paused at its limit of steps', isQuestion: false },
  {
    name: 'approve',
    meaning: 'allow what the agent asks for; always: the same from now on, too',
    argument: {
      name: 'which',
      meaning: 'always, or the id where several wait',
      isRequired: false,
      hasSuggestions: false,
    },
    isQuestion: false,
  },
  {
    name: 'deny',
    meaning: 'refuse what the agent asks for',
    argument: { name: 'which', meaning: 'the id where several wait', isRequired: false, hasSuggestions: false },
    isQuestion: false,
  },
  { name: 'status', meaning: 'what is going on here', isQuestion: true },
  {
    name: 'queue',
    meaning: `show what waits, or choose its mode: ${QUEUE_MODES.join(', ')}, or default`,
    argument: { name: 'mode', meaning: 'the mode, or default', isRequired: false, hasSuggestions: true },
    isQuestion: false,
  },
  {
    name: 'model',
    meaning: 'show or choose the model; default takes the choice back',
    argument: { name: 'name', meaning: 'the model, or default', isRequired: false, hasSuggestions: true },
    isQuestion: false,
  },
  {
    name: 'backend',
    meaning: `show or choose the agent: ${BACKEND_NAMES.join(', ')}; default takes the choice back`,
    argument: { name: 'name', meaning: 'the agent, or default', isRequired: false, hasSuggestions: true },
    isQuestion: false,
  },
  { name: 'sessions', meaning: 'the last sessions of this project', isQuestion: true },
  {
    name: 'resume',
    meaning: 'go on in an earlier session',
    argument: { name: 'session', meaning: 'its number or its id', isRequired: true, hasSuggestions: true },
    isQuestion: false,
  },
  {
    name: 'project',
    meaning: 'show or choose the project; default takes the choice back',
    argument: { name: 'id', meaning: 'the project, or default', isRequired: false, hasSuggestions: true },
    isQuestion: false,
  },
  {
    name: 'allow',
    meaning: 'let somebody in on Discord or WhatsApp, or list who was let in; for the owner',
    argument: {
      name: 'person',
      meaning: 'whom to let in; left out, a list',
      isRequired: false,
      hasSuggestions: false,
      isPerson: true,
    },
    isQuestion: false,
  },
  {
    name: 'disallow',
    meaning: 'take back what /allow gave',
    argument: {
      name: 'person',
      meaning: 'whose access to remove',
      isRequired: false,
      hasSuggestions: false,
      isPerson: true,
    },
    isQuestion: false,
  },
  { name: 'usage', meaning: 'turns, time, tokens and cost', isQuestion: true },
  { name: 'help', meaning: 'this list', isQuestion: true },
] as const satisfies CommandDescription[]

/** Commands that are messages: the agent answers them. */
export const MESSAGE_COMMANDS = ['ask', 'compact'] as const satisfies (typeof COMMANDS)[number]['name'][]

export type CommandName = (typeof COMMANDS)[number]['name']

export const HELP_TEXT = COMMANDS.map((command) => {
  if (!('argument' in command)) return `/${command.name}: ${command.meaning}`
  const { name, isRequired } = command.argument
  return `/${command.name} ${isRequired ? `<${name}>` : `[${name}]`}: ${command.meaning}`
}).join('\n')
