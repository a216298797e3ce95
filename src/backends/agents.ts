// The agents, one line each. Everything that lists agents or knows their names derives from this table.

import { ClaudeCodeBackend } from './claude/backend.js'
import { CodexBackend } from './codex/backend.js'
import { GeminiBackend } from './gemini/backend.js'
import { OpenCodeBackend } from './opencode/backend.js'
import { PiBackend } from './pi/backend.js'

/** `provider` is the name used in HTTP, health, metrics and pod labels, where it differs. */
export const AGENTS = {
  claude: { backend: ClaudeCodeBackend, provider: 'claudecode' },
  codex: { backend: CodexBackend },
  gemini: { backend: GeminiBackend },
  opencode: { backend: OpenCodeBackend },
  pi: { backend: PiBackend },
} as const
