// Arguments of an operator's command template, beside those that a backend gives its CLI itself.

/** An option by all its names, and whether a value may follow it as an argument of its own. */
export interface CliOption {
  names: readonly string[]
  takesValue: boolean
}

/** Whether one of the options is among the arguments; `--name=value` counts, too. */
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
    // An option can stand where its value would: that was the prompt, which goes by stdin.
    else if (option.takesValue && nameOf(argument) === argument && isValue(args[index + 1])) index += 1
  }
  return kept
}

/** The value of an option, of the first one that is there. */
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
