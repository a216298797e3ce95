// Starts further processes from our own code, built or as sources.

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** The command that runs one of our modules, such as `./sweep`: relative to `base`, without its extension. */
export function ownCommand(module: string, base: string): [executable: string, ...args: string[]] {
  const isSource = base.endsWith('.ts')
  const entry = fileURLToPath(new URL(`${module}${isSource ? '.ts' : '.js'}`, base))
  return [process.execPath, ...(isSource ? loaders(process.execArgv) : []), entry]
}

/** The caller reads its stdout; its stderr goes to the terminal. */
export function startOwnProgram(command: string[], cwd: string, environment: NodeJS.ProcessEnv): ChildProcess {
  const [executable = '', ...args] = command
  return spawn(executable, args, { cwd, env: environment, stdio: ['ignore', 'pipe', 'inherit'] })
}

/** The options that load TypeScript. Others must not be inherited: `-e` would run the first program again. */
function loaders(execArgv: string[]): string[] {
  return execArgv.flatMap((argument, index) => {
    if (/^(?:--require|--import|--loader)=/.test(argument)) return [argument]
    return /^(?:-r|--require|--import|--loader)$/.test(argument) ? execArgv.slice(index, index + 2) : []
  })
}
