// Starts further processes of our own code, from the build or from the sources.

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** The command that runs a module of ours, such as `./sweep`, named relative to `base` and without its ending. */
export function ownCommand(module: string, base: string): [executable: string, ...args: string[]] {
  const isSource = base.endsWith('.ts')
  const entry = fileURLToPath(new URL(`${module}${isSource ? '.ts' : '.js'}`, base))
  return [process.execPath, ...(isSource ? loaders(process.execArgv) : []), entry]
}

/** Starts it beside us; what it prints on stdout is for the caller, on stderr for the terminal. */
export function startOwnProgram(command: string[], cwd: string, environment: NodeJS.ProcessEnv): ChildProcess {
  const [executable = '', ...args] = command
  return spawn(executable, args, { cwd, env: environment, stdio: ['ignore', 'pipe', 'inherit'] })
}

/** What lets Node.js read TypeScript. Other options are not for a second process: `-e` would run the first one again. */
function loaders(execArgv: string[]): string[] {
  return execArgv.flatMap((argument, index) => {
    if (/^(?:--require|--import|--loader)=/.test(argument)) return [argument]
    return /^(?:-r|--require|--import|--loader)$/.test(argument) ? execArgv.slice(index, index + 2) : []
  })
}
