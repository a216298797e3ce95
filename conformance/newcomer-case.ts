/** The first start, with one agent installed and logged in: one command leads to an answer. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdir, symlink } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { atTerminal, RunningCommand } from '../test/kit/running-command.js'
import type { Case } from './case.js'
import { lastUserText } from './checks.js'
import { say } from './model-replies.js'
import { openOneshot } from './place.js'
import type { Stage } from './stage.js'

const enter = '\r'
const interrupt = '\u0003'
const questions = ['Which agent', 'What may the agent do', 'Which directory', 'Discord?']
const greeting = 'Hello, who are you?'
const answer = 'I am the scripted model.'

export const newcomer: Case = {
  name: 'newcomer',
  title: 'First start, from an empty home to an answer',
  async run({ open }) {
    const stage = await open(() => say(answer), openOneshot)
    const { environment, file } = await installed(stage)
    const options = { cwd: stage.sandbox.workspace, env: environment }
    const [program, words] = atTerminal(`'${process.execPath}' '${file}'`)
    const gateway = new RunningCommand(spawn(program, words, options))
    for (const question of questions) {
      await gateway.printed(question)
      gateway.press(enter)
    }
    await gateway.printed('Ctrl-C stops it.')
    const chat = new RunningCommand(spawn(process.execPath, [file, 'chat'], options))
    chat.type(greeting)
    chat.endInput()
    assert.deepEqual([await chat.exited, chat.stdout, chat.stderr], [0, `${answer}\n`, ''])
    assert.equal(lastUserText(stage.model.requests.at(-1)), greeting)
    gateway.press(interrupt)
    await gateway.exited
    return `${questions.length} questions, to which Enter agrees, then an answer`
  },
}

/** A machine where this agent is the only one, and `aetheel` was never run. */
async function installed({ agent, installation, sandbox, aetheel }: Stage) {
  const commands = join(sandbox.temporary, 'commands')
  await mkdir(commands)
  await symlink(installation.cliPath, join(commands, agent.binary))
  const PATH = [commands, sandbox.environment['PATH']].join(delimiter)
  const environment = { ...sandbox.environment, PATH, SHELL: '/bin/sh', HTTP_PORT: '0', BACKEND_MODEL: agent.model }
  return { environment, file: await aetheel() }
}
