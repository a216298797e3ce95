// The door of the package: what `import … from 'aetheel'` gives. Nothing inside the project imports it.

export { ClaudeCodeBackend } from './backends/claude-backend.js'
export { CodexBackend } from './backends/codex-backend.js'
export { GeminiBackend } from './backends/gemini-backend.js'
export { OpenCodeBackend } from './backends/opencode-backend.js'
export { PiBackend } from './backends/pi-backend.js'
export { BackendRegistry, createBackend, resolveBackendName } from './backends/registry.js'
export type * from './backends/types.js'
export { BACKEND_NAMES } from './backends/types.js'
export { type ErrorCode, GatewayError } from './errors.js'
export { type AgentMeta, type ParsedReply, parseReply } from './relay/parse-reply.js'
