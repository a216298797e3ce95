// Public import path. The agent itself is in `claude/`.

export { ClaudeCodeBackend } from './claude/backend.js'
