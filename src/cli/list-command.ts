import type { Command } from 'commander'
import type { Store } from '../store/store.js'
import { countArgument } from './arguments.js'
import type { CommandContext } from './command-context.js'
import { type ListOptions, terminalWidth } from './listing.js'

export interface ListFlags {
  limit: number
  json?: true
}

/** Makes `command` print a list from the store. */
export function defineList(
  command: Command,
  description: string,
  context: CommandContext,
  list: (store: Store, options: ListOptions) => Promise<string>,
): void {
  addListFlags(command)
    .description(description)
    .action((flags: ListFlags) => context.inspect((store) => list(store, listOptions(flags))))
}

export function addListFlags(command: Command): Command {
  return command
    .option('-n, --limit <number>', 'maximum number of entries', countArgument, 50)
    .option('--json', 'print JSON')
}

export function listOptions({ limit, json }: ListFlags): ListOptions {
  return { limit, isJson: json === true, width: terminalWidth(), now: Date.now() }
}
