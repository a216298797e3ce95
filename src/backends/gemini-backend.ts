// Others import this path. The agent itself is in `gemini/`.

export { GeminiBackend } from './gemini/backend.js'
