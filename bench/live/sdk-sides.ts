/** The vendors' own SDKs, used for successive turns as their documentation describes. */
import type { BackendName } from '../../src/backends/types.js'
import { SYSTEM_PROMPT } from './script.js'
import { type OpenSide, type SidePlace, type SpokenTurn, TurnClock } from './side.js'

// Installed only for the benchmarks, so the compiler may not find them. These are the parts we use.

interface ClaudeSdk {
  query(given: {
    prompt: AsyncIterable<object>
    options: Record<string, unknown>
  }): AsyncIterable<{ type: string; event?: { delta?: { text?: string } } }>
}

interface CodexSdk {
  Codex: new (options: Record<string, unknown>) => {
    startThread(options: Record<string, unknown>): {
      runStreamed(prompt: string): Promise<{
        events: AsyncIterable<{ type: string; item?: { type: string; text?: string } }>
      }>
    }
  }
}

const CLAUDE_SDK: string = '@anthropic-ai/claude-agent-sdk'
const CODEX_SDK: string = '@openai/codex-sdk'

export const sdkSides: Partial<Record<BackendName, OpenSide>> = { claude: openClaudeSdk, codex: openCodexSdk }

/** With streaming input: one query for all turns. */
async function openClaudeSdk({ agent, installation, sandbox }: SidePlace) {
  const { query } = (await import(CLAUDE_SDK)) as ClaudeSdk
  const ends: Array<() => void> = []
  return {
    async open() {
      let give = (_message: object | undefined): void => {}
      const given = (): Promise<object | undefined> => new Promise((resolve) => (give = resolve))
      let next = given()
      async function* prompts(): AsyncGenerator<object> {
        for (let message = await next; message; message = await next) {
          next = given()
          yield message
        }
      }
      const messages = query({
        prompt: prompts(),
        options: {
          cwd: sandbox.workspace,
          env: sandbox.environment,
          model: agent.model,
          pathToClaudeCodeExecutable: installation.cliPath,
          includePartialMessages: true,
          permissionMode: 'bypassPermissions',
          allowDangerouslySkipPermissions: true,
          systemPrompt: { type: 'preset', preset: 'claude_code', append: SYSTEM_PROMPT },
        },
      })[Symbol.asyncIterator]()
      ends.push(() => give(undefined))
      return {
        async say(prompt: string): Promise<SpokenTurn> {
          const clock = new TurnClock()
          give({ type: 'user', message: { role: 'user', content: prompt }, parent_tool_use_id: null, session_id: '' })
          for (;;) {
            const { value, done } = await messages.next()
            if (done) throw new Error('The Claude SDK ended in the middle of a turn')
            const { type, event } = value
            if (event?.delta?.text !== undefined) clock.heard(event.delta.text)
            if (type === 'result') return clock.end()
          }
        },
      }
    },
    async close() {
      for (const end of ends) end()
    },
  }
}

async function openCodexSdk({ agent, installation, sandbox }: SidePlace) {
  const { Codex } = (await import(CODEX_SDK)) as CodexSdk
  const codex = new Codex({ codexPathOverride: installation.cliPath, env: sandbox.environment })
  return {
    async open() {
      const thread = codex.startThread({
        model: agent.model,
        workingDirectory: sandbox.workspace,
        skipGitRepoCheck: true,
        sandboxMode: 'danger-full-access',
        approvalPolicy: 'never',
      })
      return {
        async say(prompt: string): Promise<SpokenTurn> {
          const clock = new TurnClock()
          const { events } = await thread.runStreamed(prompt)
          for await (const { type, item } of events) {
            if (type === 'item.completed' && item?.type === 'agent_message') clock.heard(item.text ?? '')
          }
          return clock.end()
        },
      }
    },
    close: async () => {},
  }
}
