import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { fromWire, toWire } from '../../src/service/wire.js'

const schema = z.object({
  run_id: z.string(),
  session_id: z.string().nullable(),
  pod_problem: z.string().optional(),
  started_at: z.iso.datetime(),
  ended_at: z.iso.datetime().nullable(),
  retry_at: z.number().optional(),
  metadata: z.record(z.string(), z.unknown()),
})

describe('toWire', () => {
  it('writes the fields of the schema, times as ISO 8601, and leaves the keys of others alone', () => {
    const source = {
      runId: 'r',
      sessionId: 's',
      podProblem: 'p',
      startedAt: 0,
      endedAt: 1,
      retryAt: 2,
      metadata: { fileName: { innerName: 1 }, created_at: 3 },
      secret: 'not in the schema',
    }
    expect(toWire(schema, source)).toStrictEqual({
      run_id: 'r',
      session_id: 's',
      pod_problem: 'p',
      started_at: '1970-01-01T00:00:00.000Z',
      ended_at: '1970-01-01T00:00:00.001Z',
      retry_at: 2,
      metadata: { fileName: { innerName: 1 }, created_at: 3 },
    })
  })

  it('writes null for unknown values, and leaves out what cannot be null', () => {
    expect(toWire(schema, { runId: 'r', podProblem: undefined, startedAt: 0, metadata: {} })).toStrictEqual({
      run_id: 'r',
      session_id: null,
      started_at: '1970-01-01T00:00:00.000Z',
      ended_at: null,
      metadata: {},
    })
  })
})

describe('fromWire', () => {
  it('leaves out what is undefined, keeps what is null, and leaves the keys of others alone', () => {
    const wire = { max_turns: null, allowed_tools: ['a_b'], model: undefined, metadata: { file_name: 'x' } }
    expect(fromWire(wire)).toStrictEqual({
      maxTurns: null,
      allowedTools: ['a_b'],
      metadata: { file_name: 'x' },
    })
  })
})
