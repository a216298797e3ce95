import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { agentOf } from '../../conformance/agents.js'
import { columns } from '../../conformance/columns.js'
import { columnDrift, optionsIn, renderDrift } from '../../conformance/drift.js'
import { kindOf } from '../../conformance/wire.js'

it.each<[line: object | string, kind: string | undefined]>([
  [{ type: 'system', subtype: 'init' }, 'system init'],
  [
    { type: 'stream_event', event: { type: 'content_block_delta', delta: { type: 'text_delta' } } },
    'stream_event content_block_delta text_delta',
  ],
  [{ type: 'item.completed', item: { type: 'agent_message' } }, 'item.completed agent_message'],
  [{ method: 'item/started', params: { item: { type: 'commandExecution' } } }, 'item/started commandExecution'],
  [{ method: 'session/update', params: { update: { sessionUpdate: 'tool_call' } } }, 'session/update tool_call'],
  [{ type: 'tool_use', part: { type: 'tool' } }, 'tool_use tool'],
  [{ type: 'message_update', assistantMessageEvent: { type: 'text_delta' } }, 'message_update text_delta'],
  [{ id: 1, result: { type: 'answer' } }, undefined],
  ['Warning: no terminal', undefined],
])('%j is of the kind %s', (line, kind) => {
  expect(kindOf(typeof line === 'string' ? line : JSON.stringify(line))).toBe(kind)
})

it('finds the options in a help text, and not those of others that it names', () => {
  const help = [
    'Usage: agent --ignored [options]',
    '  -p, --print                 Answer once, as `other --quiet` does',
    '      --allowed-tools, --allowedTools <names>',
    '  --mode <mode>               See --help-more',
  ]
  expect(optionsIn(help.join('\n'))).toEqual(['--print', '--allowed-tools', '--allowedTools', '--mode'])
})

it('reports what has changed, which of it we use, and where to look', async () => {
  const none = { added: [], removed: [] }
  const same = { uninstallable: {}, options: none, columns: [] }
  const report = await renderDrift([
    { agent: agentOf('codex'), pinned: '0.169.0', installed: '0.169.0', ...same },
    {
      agent: agentOf('pi'),
      pinned: '0.87.1',
      installed: '0.90.0',
      uninstallable: { '1.5.0': 'no matching version found for a-part@^1.5.0' },
      options: { added: ['--sandbox'], removed: ['--approve', '--theme'] },
      columns: [
        {
          title: 'pi live',
          source: 'src/backends/pi/warm-driver.ts',
          kinds: { added: ['agent_paused'], removed: [] },
          notUnderstood: ['agent_paused'],
          failures: [{ case: '429', before: 'rate_limit: Too many requests.', now: 'Expected\n  "429"' }],
        },
      ],
    },
  ])
  expect(report).toBe(
    [
      'Drift from the pinned versions',
      '',
      '@openai/codex: 0.169.0, as pinned',
      '  no changes',
      '',
      '@earendil-works/pi-coding-agent: 0.87.1 is pinned, 0.90.0 was tested',
      '  1.5.0 does not install: no matching version found for a-part@^1.5.0',
      '  new options: --sandbox',
      '  removed options: --approve, --theme',
      '  removed options that Aetheel passes, see src/backends/pi: --approve',
      '  pi live, see src/backends/pi/warm-driver.ts',
      '    new kinds of messages: agent_paused',
      '    not understood: agent_paused',
      '  pi live 429 fails, see conformance/expectations.ts and src/backends/pi/warm-driver.ts',
      '    before: rate_limit: Too many requests.',
      '    now:    Expected "429"',
    ].join('\n'),
  )
})

it('sends to sources that exist', () => {
  const seen = { kinds: new Set<string>(), notUnderstood: new Set<string>() }
  const sources = columns.map((column) => columnDrift('', column, seen, { options: {}, kinds: {} }, []).source)
  expect(sources.filter((source) => !existsSync(join(import.meta.dirname, '../..', source)))).toEqual([])
})
