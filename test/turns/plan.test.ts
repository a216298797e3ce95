import { expect, it } from 'vitest'
import { loadConfig } from '../../src/config.js'
import type { Work } from '../../src/turns/types.js'
import { type PlanDependencies, planTurn } from '../../src/turns/plan.js'

it('a command of a cron job that was cut off is done again by its name', () => {
  const message = { kind: 'cron', options: { job: 'backup', command: ['make'] } }
  const work = { conversation: {}, message, wasInterrupted: true } as Work
  const config = loadConfig({ HOME: '/home/ada' })
  expect(() => planTurn(work, { config } as PlanDependencies)).toThrow(
    'The gateway ended while the command ran, so it was cut off. Look what is done already, then do it again with: aetheel cron run backup.',
  )
})
