import { startProcess } from '../../processes/local-process.js'

/** Codex describes each of its models at length. */
const MAX_CHARACTERS = 4_000_000

/** What a CLI prints, on stdout and stderr, for arguments that need neither a prompt nor a model. */
export async function askCli(
  executable: string,
  args: string[],
  environment: Record<string, string>,
  signal: AbortSignal,
  stdin = '',
): Promise<string> {
  let output = ''
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(0, MAX_CHARACTERS)
  }
  const child = startProcess({
    executable,
    args,
    cwd: '/',
    environment,
    stdin,
    runId: `ask-${process.pid}-${process.hrtime.bigint()}`,
    stopSignal: 'SIGTERM',
    onStdout: collect,
    onStderr: collect,
  })
  if (signal.aborted) child.stop()
  signal.addEventListener('abort', child.stop)
  await child.ended
  signal.removeEventListener('abort', child.stop)
  return output
}
