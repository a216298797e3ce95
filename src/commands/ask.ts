import type { AgentBackend, AgentEvent, AgentRequest, AgentResult } from '../backends/types.js'

interface AskOptions {
  backend: Pick<AgentBackend, 'run'>
  request: AgentRequest
  /** Every event as a line of JSON instead of text. */
  isJson: boolean
  stdout: Pick<NodeJS.WritableStream, 'write'>
  stderr: Pick<NodeJS.WritableStream, 'write'>
  signal: AbortSignal
}

/** Asks one agent one thing: the answer streams to stdout, what it does meanwhile to stderr. */
export async function ask({ backend, request, isJson, stdout, stderr, signal }: AskOptions): Promise<AgentResult> {
  let streamed = ''
  let isMidLine = false
  let result: AgentResult | undefined
  for await (const event of backend.run(request, signal)) {
    if (event.type === 'complete') result = event.result
    if (isJson) stdout.write(`${JSON.stringify(event)}\n`)
    else if (event.type === 'output') {
      streamed += event.content
      isMidLine = !event.content.endsWith('\n')
      stdout.write(event.content)
    } else {
      const activity = describeActivity(event)
      if (activity === undefined) continue
      stderr.write(`${isMidLine ? '\n' : ''}${activity}\n`)
      isMidLine = false
    }
  }
  if (result === undefined) throw new Error('A run ended without its complete event')
  if (!isJson) printEnd(result, streamed, stdout, stderr)
  return result
}

function printEnd(
  result: AgentResult,
  streamed: string,
  stdout: AskOptions['stdout'],
  stderr: AskOptions['stderr'],
): void {
  const { finalOutput = '', sessionId, failure } = result
  // What streamed may fall short of the answer of record, as when the connection broke on the way.
  if (!streamed.endsWith(finalOutput)) stdout.write(`${streamed === '' ? '' : '\n\n'}${finalOutput}`)
  if (streamed !== '' || finalOutput !== '') stdout.write('\n')
  if (failure) stderr.write(`Error (${failure.reason}): ${failure.message}\n`)
  if (sessionId !== undefined) stderr.write(`Session: ${sessionId}\n`)
}

const INPUT_CHARACTERS = 120

function describeActivity(event: AgentEvent): string | undefined {
  switch (event.type) {
    case 'tool_use':
      return oneLine(`→ ${event.toolName} ${JSON.stringify(event.toolInput)}`)
    case 'tool_result':
      return oneLine(`${event.isError ? '✗' : '✓'} ${event.toolName} ${event.content}`)
    case 'notice':
      return oneLine(`! ${event.content}`)
    default:
      return undefined
  }
}

function oneLine(text: string): string {
  // Control characters would act on the terminal.
  const line = text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
  return line.length <= INPUT_CHARACTERS ? line : `${line.slice(0, INPUT_CHARACTERS)}…`
}
