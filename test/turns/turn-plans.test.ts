import { expect, it } from 'vitest'
import type { CredentialStore } from '../../src/credentials/credential-store.js'
import { loadConfig } from '../../src/config.js'
import type { Work } from '../../src/turns/queue.js'
import type { CommandRuntime } from '../../src/runtime/command-runtime.js'
import { planCommand } from '../../src/turns/turn-plans.js'

it('a command of a cron job that was cut off is done again by its name', () => {
  const message = { kind: 'cron', options: { job: 'backup', command: ['make'] } }
  const work = { conversation: {}, message, wasInterrupted: true } as Work
  const config = loadConfig({ HOME: '/home/ada' })
  expect(() => planCommand(work, ['make'], config, {} as CommandRuntime, {} as CredentialStore)).toThrow(
    'The gateway ended while the command ran, so it was cut off. Look what is done already, then do it again with: aetheel cron run backup.',
  )
})
