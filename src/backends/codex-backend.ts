// Others import this path. The agent itself is in `codex/`.

export { CodexBackend } from './codex/backend.js'
