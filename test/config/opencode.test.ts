import { describe, expect, it } from 'vitest'
import { configShow } from '../../src/cli/commands/config.js'
import { loadConfig } from '../../src/config.js'
import { applyConfig } from '../../src/config/reload.js'

const HOME = { HOME: '/home/ada' }
const ENABLED = { ...HOME, OPENCODE_ENABLED: 'true' }
const MANAGED = { ...ENABLED, OPENCODE_MANAGED: 'true' }

describe('an OpenCode server in the configuration', () => {
  it.each([
    ['one that is managed', MANAGED],
    ['one here, with a password', { ...ENABLED, OPENCODE_PASSWORD: 'secret' }],
    ['one elsewhere, by https', { ...ENABLED, OPENCODE_PASSWORD: 'secret', OPENCODE_URL: 'https://build.example' }],
    ['what is set for one that is not used', { ...HOME, OPENCODE_URL: 'http://build.example' }],
  ])('is accepted silently: %s', (_, variables) => {
    expect(loadConfig(variables).warnings).toEqual([])
  })

  it.each([
    [{ ...HOME, OPENCODE_MANAGED: 'true' }, ['OPENCODE_MANAGED: does nothing without opencodeEnabled.']],
    [
      { ...ENABLED, OPENCODE_PASSWORD: 'secret', OPENCODE_URL: 'http://build.example:4096' },
      ['OPENCODE_URL: http does not encrypt prompts and the password: use https.'],
    ],
    [
      ENABLED,
      [
        'OPENCODE_ENABLED: no password is set: if the OpenCode server has none either, anyone who can reach it can run commands as its user. Start it with OPENCODE_SERVER_PASSWORD and set opencodePassword.',
      ],
    ],
  ])('is warned about: %o', (variables, warnings) => {
    expect(loadConfig(variables).warnings).toEqual(warnings)
  })

  it.each([
    ['OPENCODE_URL', 'http://127.0.0.1:4097'],
    ['OPENCODE_USERNAME', 'ada'],
    ['OPENCODE_PASSWORD', 'secret'],
  ])('is refused if it is both managed and has %s', (name, value) => {
    expect(() => loadConfig({ ...MANAGED, [name]: value })).toThrow(
      `${name}: is for a server that is already running. Remove it, or set opencodeManaged to false`,
    )
  })

  it('is shown without its password', () => {
    const environment = { ...ENABLED, OPENCODE_PASSWORD: 'very-secret' }
    const { text } = configShow({ environment, cwd: '/', isJson: false })
    expect([
      text.includes('very-secret'),
      /opencodePassword +environment \(OPENCODE_PASSWORD\) +"\*\*\*"/.test(text),
    ]).toEqual([false, true])
  })

  it('is another one only after the next start', () => {
    const next = loadConfig({ ...ENABLED, OPENCODE_PASSWORD: 'secret', OPENCODE_URL: 'http://127.0.0.1:4097' })
    expect(applyConfig(loadConfig(MANAGED), next)).toEqual({
      changed: [],
      waiting: ['opencodeManaged', 'opencodeUrl', 'opencodePassword'],
    })
  })
})
