// Public import path. The agent itself is in `opencode/`.

export { OpenCodeBackend } from './opencode/backend.js'
