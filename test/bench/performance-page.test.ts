import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Measurement } from '../../bench/measurement.js'
import { withResults } from '../../bench/performance-page.js'

const page = readFileSync(new URL('../../docs/performance.md', import.meta.url), 'utf8')

describe('docs/performance.md', () => {
  it('shows the figures of bench/results.json', () => {
    const results = JSON.parse(
      readFileSync(new URL('../../bench/results.json', import.meta.url), 'utf8'),
    ) as Measurement[]
    expect(withResults(page, results)).toBe(page)
  })

  it('gets the figures of each agent, and every goal', () => {
    const figures = { memoryMb: { bare: 400, gateway: 470.5 } }
    const goal = { value: 70.5, unit: 'MB added', goal: '<= 100', holds: true }
    const written = withResults(page, [{ name: 'live-memory.pi', ...goal, figures }])
    expect(written.split('<!--')[1]).toBe(
      [
        ' Written by npm run bench: -->',
        '',
        '## Five conversations that nobody speaks in, in megabytes',
        '',
        '| Agent | CLI | With all of the gateway |',
        '| ----- | --- | ----------------------- |',
        '| pi    | 400 | 470.5                   |',
        '',
        '## Goals',
        '',
        '| What             | Measured      | Goal        | Holds |',
        '| ---------------- | ------------- | ----------- | ----- |',
        '| `live-memory.pi` | 70.5 MB added | at most 100 | yes   |',
        '',
        '',
      ].join('\n'),
    )
  })
})
