// Turns voice messages into text by running the operator's command.

import { StringDecoder } from 'node:string_decoder'
import { agentEnvironment } from '../core/agent-environment.js'
import type { Transcribe } from './whatsapp/intake.js'
import { GatewayError } from '../errors.js'
import { runCommand } from '../processes/run-command.js'
import { createRunDirectory } from '../processes/run-directory.js'
import { expandArguments } from '../turns/inbound-reply/command-template.js'
import { safeFileNames } from '../media/safe-file-names.js'

interface TranscriptionOptions {
  /** The executable and its arguments, with templates such as {{MediaPath}}. */
  command: string[]
  timeoutSeconds: number
  workingDir: string
  environment: NodeJS.ProcessEnv
  passVariables: readonly string[]
}

/** Per recording; nobody talks that long. */
const MAX_CHARACTERS = 100_000

export function transcribeWith(options: TranscriptionOptions): Transcribe {
  const { command, timeoutSeconds, workingDir, environment, passVariables } = options
  return async ({ name, content, variables }, signal) => {
    const directory = createRunDirectory()
    try {
      const [safeName = ''] = safeFileNames([name])
      const [executable = '', ...args] = command
      const values = { ...variables, MediaPath: directory.write(safeName, content) }
      const decoder = new StringDecoder('utf8')
      let printed = ''
      const outcome = await runCommand({
        argv: [executable, ...expandArguments(args, values)],
        cwd: workingDir,
        environment: agentEnvironment(environment, passVariables),
        stdin: '',
        onStdout: (chunk) => {
          if (printed.length < MAX_CHARACTERS) printed += decoder.write(chunk)
        },
        timeoutMs: timeoutSeconds * 1000,
        signal,
      })
      if (outcome.ok) return printed.slice(0, MAX_CHARACTERS)
      throw new GatewayError(
        'request_invalid',
        `${executable} ${outcome.problem}. The operator can try the command by hand.`,
      )
    } finally {
      directory.remove()
    }
  }
}
