// Arguments of a command line, and those that an operator's command template adds to them.

import type { AgentCommand } from '../types.js'

/** An option with all its names, and whether its value may follow as a separate argument. */
export interface CliOption {
  names: readonly string[]
  takesValue: boolean
}

/** Whether only a command line can do what the operator wants. A command may be empty: `inbound.reply` can set other things,
 *  such as prefixes, without a template. */
export function needsCommandLine(command: AgentCommand | undefined): boolean {
  if (!command) return false
  const { executable, args, sessionArgs, format } = command
  return executable !== undefined || args.length > 0 || sessionArgs !== undefined || format === 'text'
}

/** The option with its value; nothing without one. */
export function optionArgs(name: string, value: string | undefined): string[] {
  return value === undefined ? [] : [name, value]
}

/** Whether one of the options is among the arguments, even as `--name=value`. */
export function namesOption(args: readonly string[], names: readonly string[]): boolean {
  return args.some((argument) => names.includes(nameOf(argument)))
}

/** The arguments without these options and their values. */
export function withoutOptions(args: readonly string[], options: readonly CliOption[]): string[] {
  const kept: string[] = []
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index] ?? ''
    const option = options.find(({ names }) => names.includes(nameOf(argument)))
    if (!option) kept.push(argument)
    // An option may follow where a value should: the value was the prompt, which travels on stdin.
    else if (option.takesValue && nameOf(argument) === argument && isValue(args[index + 1])) index += 1
  }
  return kept
}

/** The value of the first of these options that is present. */
export function valueOf(args: readonly string[], names: readonly string[]): string | undefined {
  const index = args.findIndex((argument) => names.includes(nameOf(argument)))
  const argument = args[index]
  if (argument === undefined) return undefined
  const name = nameOf(argument)
  return name === argument ? args[index + 1] : argument.slice(name.length + 1)
}

function nameOf(argument: string): string {
  return /^--[^=]+(?==)/.exec(argument)?.[0] ?? argument
}

function isValue(argument: string | undefined): boolean {
  return argument !== undefined && !argument.startsWith('-')
}
