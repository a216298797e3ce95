import { startProcess } from '../../processes/local-process.js'

export interface CliAnswer {
  /** stdout and stderr, in the order of arrival. */
  output: string
  /** Absent if it was not started, or did not end before the signal. */
  exitCode?: number
}

const MAX_CHARACTERS = 10_000

/** Asks a CLI something that needs neither a prompt nor a model. */
export async function askCli(
  executable: string,
  args: string[],
  environment: Record<string, string>,
  signal: AbortSignal,
): Promise<CliAnswer> {
  let output = ''
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(0, MAX_CHARACTERS)
  }
  const child = startProcess({
    executable,
    args,
    cwd: '/',
    environment,
    stdin: '',
    runId: `ask-${process.pid}-${process.hrtime.bigint()}`,
    stopSignal: 'SIGTERM',
    onStdout: collect,
    onStderr: collect,
  })
  if (signal.aborted) child.stop()
  signal.addEventListener('abort', child.stop)
  const exit = await child.ended
  signal.removeEventListener('abort', child.stop)
  return { output, ...(!signal.aborted && 'exitCode' in exit && { exitCode: exit.exitCode }) }
}
