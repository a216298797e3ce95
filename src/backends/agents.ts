// The agents, a line each: whatever lists agents or knows their names follows from this table.

import { ClaudeCodeBackend } from './claude/backend.js'
import { CodexBackend } from './codex/backend.js'
import { GeminiBackend } from './gemini/backend.js'
import { OpenCodeBackend } from './opencode/backend.js'
import { PiBackend } from './pi/backend.js'

/** `provider` is what HTTP, health, metrics and the labels of pods call it, where that is not its name. */
export const AGENTS = {
  claude: { backend: ClaudeCodeBackend, provider: 'claudecode' },
  codex: { backend: CodexBackend },
  gemini: { backend: GeminiBackend },
  opencode: { backend: OpenCodeBackend },
  pi: { backend: PiBackend },
} as const
