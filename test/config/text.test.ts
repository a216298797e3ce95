import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config.js'
import { configText } from '../../src/config/text.js'
import { temporaryDirectory } from '../kit/temporary-directory.js'

describe('configText', () => {
  it('keeps every text in its place, whatever it is', (test) => {
    const directory = temporaryDirectory(test.onTestFinished)
    const environment = { HOME: directory }
    const file = join(directory, 'aetheel.json5')
    const defaults = loadConfig(environment)
    const text = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
      fc.constantFrom(
        "'",
        '"',
        '\\',
        '*/ // \n',
        "',\nagentBackend: 'pi', //",
        '\u2028x: 1',
        '${x}',
        '\r',
        '__proto__',
      ),
    )
    const words = text.filter((value) => Buffer.from(value).toString() === value && value.trim() !== '')
    fc.assert(
      fc.property(words, words, words, words, (directory, token, name, owner) => {
        const path = join('/', directory)
        const discordBotToken = token.replaceAll(/\s/g, '_')
        writeFileSync(
          file,
          configText({
            schemaUrl: directory,
            agentBackend: 'gemini',
            agentPermissions: 'ask',
            project: { id: 'a-b', directory: path, discordChannel: { id: '100000000000000001', name } },
            discord: { token: discordBotToken, owner: { id: '100000000000000002', name: owner } },
          }),
        )
        expect(loadConfig(environment, file)).toEqual({
          ...defaults,
          configFile: file,
          agentBackend: 'gemini',
          codeAgentDefault: 'gemini',
          backendCliPath: 'gemini',
          agentPermissions: 'ask',
          defaultProject: 'a-b',
          workingDir: resolve(path),
          projects: [{ id: 'a-b', directory: resolve(path), discordChannels: ['100000000000000001'] }],
          discordBotToken,
          discordOwnerId: '100000000000000002',
        })
      }),
      { numRuns: 100 },
    )
  })
})
