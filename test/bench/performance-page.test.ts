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

  it('shows the figures of each agent, and every goal', () => {
    const figures = { memoryMb: { bare: 400, gateway: 470.5 } }
    const goal = { value: 70.5, unit: 'MB added', goal: '<= 100', holds: true }
    const written = withResults(page, [{ name: 'live-memory.pi', ...goal, figures }])
    expect(written.split('<!--')[1]).toBe(
      [
        ' Written by npm run bench: -->',
        '',
        '## Memory of five idle conversations, in MB',
        '',
        '| Agent | CLI | CLI and gateway |',
        '| ----- | --- | --------------- |',
        '| Pi    | 400 | 470.5           |',
        '',
        '## Goals',
        '',
        '| Goal             | Measured      | Limit       | Met |',
        '| ---------------- | ------------- | ----------- | --- |',
        '| `live-memory.pi` | 70.5 MB added | at most 100 | yes |',
        '',
        '',
      ].join('\n'),
    )
  })
})
