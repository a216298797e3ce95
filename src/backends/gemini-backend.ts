// Public import path. The agent itself is in `gemini/`.

export { GeminiBackend } from './gemini/backend.js'
