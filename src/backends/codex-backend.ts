// Public import path. The agent itself is in `codex/`.

export { CodexBackend } from './codex/backend.js'
