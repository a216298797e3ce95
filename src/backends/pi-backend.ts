// Public import path. The agent itself is in `pi/`.

export { PiBackend } from './pi/backend.js'
