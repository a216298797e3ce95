// A badly behaved MCP server without tools: it stays alive when nobody listens to it any more.

import { createInterface } from 'node:readline'

createInterface(process.stdin).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  const result =
    method === 'initialize'
      ? {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'idle', version: '1' },
        }
      : { tools: [] }
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)
})
process.stdout.on('error', () => {})
setInterval(() => {}, 60_000)
