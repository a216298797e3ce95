import { expect, it } from 'vitest'
import type { AgentBackend, AgentProbe, BackendName } from '../../../src/backends/types.js'
import { agentsReport } from '../../../src/cli/doctor/agents-report.js'

const FOUND: AgentProbe = { isFound: true, path: '/bin/codex', version: '1.2.3', mode: 'live', problems: [] }
const MISSING: AgentProbe = { isFound: false, problems: ['A long sentence.'], install: 'npm install -g @openai/codex' }

it.each<[what: string, probe: AgentProbe, chosen: string[], other: string[]]>([
  [
    'logged in',
    { ...FOUND, model: 'gpt-6', login: { state: 'logged-in', how: 'ChatGPT', fix: 'codex login' } },
    ['✓ codex (chosen): 1.2.3 at /bin/codex, live, model gpt-6, logged in with ChatGPT'],
    ['✓ codex: 1.2.3 at /bin/codex, live, model gpt-6, logged in with ChatGPT'],
  ],
  [
    'logged out',
    { ...FOUND, login: { state: 'logged-out', fix: 'codex login' } },
    ['✗ codex (chosen): 1.2.3 at /bin/codex, live, not logged in', '    Run: codex login'],
    ['! codex: 1.2.3 at /bin/codex, live, not logged in', '    Run: codex login'],
  ],
  [
    'a login that cannot be told',
    { ...FOUND, login: { state: 'unknown', why: 'It is in a keychain.', fix: 'codex login' } },
    [
      '! codex (chosen): 1.2.3 at /bin/codex, live, login unknown',
      '    It is in a keychain.',
      '    To find out: aetheel doctor --live --agent codex',
      '    To log in: codex login',
    ],
    [
      '! codex: 1.2.3 at /bin/codex, live, login unknown',
      '    It is in a keychain.',
      '    To find out: aetheel doctor --live --agent codex',
      '    To log in: codex login',
    ],
  ],
  [
    'logged out, and no command logs it in',
    { ...FOUND, login: { state: 'logged-out', fix: 'codex', next: 'type /login' } },
    ['✗ codex (chosen): 1.2.3 at /bin/codex, live, not logged in', '    Start codex and type /login.'],
    ['! codex: 1.2.3 at /bin/codex, live, not logged in', '    Start codex and type /login.'],
  ],
  [
    'a login that cannot be told, and no command for it',
    { ...FOUND, login: { state: 'unknown', why: 'It does not say.', fix: 'codex', next: 'type /login' } },
    [
      '! codex (chosen): 1.2.3 at /bin/codex, live, login unknown',
      '    It does not say.',
      '    To find out: aetheel doctor --live --agent codex',
      '    To log in: start codex and type /login',
    ],
    [
      '! codex: 1.2.3 at /bin/codex, live, login unknown',
      '    It does not say.',
      '    To find out: aetheel doctor --live --agent codex',
      '    To log in: start codex and type /login',
    ],
  ],
  [
    'the demo agent',
    { ...FOUND, isDemo: true },
    [
      '✓ demo (chosen): built in, always ready, live, in place of codex, without a model',
      '    To choose a real agent: aetheel init',
    ],
    [
      '✓ demo: built in, always ready, live, in place of codex, without a model',
      '    To choose a real agent: aetheel init',
    ],
  ],
  [
    'the demo agent, which cannot run',
    { ...FOUND, isDemo: true, problems: ['There is no Node.js.'] },
    [
      '! demo (chosen): built in, live, in place of codex, without a model',
      '    There is no Node.js.',
      '    To choose a real agent: aetheel init',
    ],
    [
      '! demo: built in, live, in place of codex, without a model',
      '    There is no Node.js.',
      '    To choose a real agent: aetheel init',
    ],
  ],
  [
    'too old',
    {
      ...FOUND,
      login: { state: 'logged-in', how: 'ChatGPT', fix: 'codex login' },
      problems: ['Version 1.2.3 is old.'],
      install: 'npm install -g @openai/codex',
      whyNotLive: 'Each turn starts a new process.',
    },
    [
      '! codex (chosen): 1.2.3 at /bin/codex, live, logged in with ChatGPT',
      '    Version 1.2.3 is old.',
      '    Run: npm install -g @openai/codex',
      '    Each turn starts a new process.',
    ],
    [
      '! codex: 1.2.3 at /bin/codex, live, logged in with ChatGPT',
      '    Version 1.2.3 is old.',
      '    Run: npm install -g @openai/codex',
      '    Each turn starts a new process.',
    ],
  ],
  [
    'not installed',
    MISSING,
    ['✗ codex (chosen): not installed', '    Run: npm install -g @openai/codex'],
    ['- codex: not installed. Run: npm install -g @openai/codex'],
  ],
  [
    'not at the path that is configured',
    { isFound: false, problems: ['"/opt/codex" is not an executable file.'] },
    ['✗ codex (chosen): not installed', '    "/opt/codex" is not an executable file.'],
    ['! codex: not installed', '    "/opt/codex" is not an executable file.'],
  ],
  [
    'a server that is not reached',
    { isFound: false, path: 'http://127.0.0.1:4096', problems: ['Nobody listens.'] },
    ['✗ codex (chosen): not reachable at http://127.0.0.1:4096', '    Nobody listens.'],
    ['! codex: not reachable at http://127.0.0.1:4096', '    Nobody listens.'],
  ],
])('%s', (_what, probe, chosen, other) => {
  const agents = [{ backend: named('codex'), probe }]
  expect([agentsReport(agents, 'codex'), agentsReport(agents, 'claude')]).toEqual([
    { text: chosen.join('\n'), isHealthy: !chosen[0]?.startsWith('✗') },
    { text: other.join('\n'), isHealthy: true },
  ])
})

function named(name: BackendName): AgentBackend {
  return { name: () => name } as AgentBackend
}
