#!/usr/bin/env node
// An agent in Claude Code's wire format that plays the work shown in docs/images.

import { randomUUID } from 'node:crypto'
import { text } from 'node:stream/consumers'

const args = process.argv.slice(2)
if (args.includes('--version')) {
  console.log('2.1.197 (Claude Code)')
  process.exit()
}
const prompt = await text(process.stdin)
const sessionId = args.includes('--resume') ? args[args.indexOf('--resume') + 1] : randomUUID()
const print = (line) => console.log(JSON.stringify({ ...line, session_id: sessionId }))
const assistant = (part) => print({ type: 'assistant', message: { id: `msg_${randomUUID()}`, content: [part] } })

const SCENES = {
  'Deploy it.': () => fail('Invalid API key · Please run /login'),
  'The total in the cart is wrong': () => {
    think('The cart adds the discount after the tax. The order of the two lines is the likely cause.')
    say('The discount is taken off **after** the tax. I change the order, and run the tests.')
    tool('Read', { file_path: 'src/cart.ts' }, 'export function totalOf(cart: Cart): number { … }')
    tool(
      'Edit',
      {
        file_path: 'src/cart.ts',
        old_string: '  const taxed = sum * (1 + cart.taxRate)\n  return round(taxed - cart.discount)',
        new_string: '  const reduced = Math.max(0, sum - cart.discount)\n  return round(reduced * (1 + cart.taxRate))',
      },
      'The file src/cart.ts has been updated.',
    )
    assistant({ type: 'tool_use', id: 'tests', name: 'Bash', input: { command: 'npm test -- cart' } })
    // Runs until it is stopped.
    setInterval(() => {}, 60_000)
  },
  'Fix the total': () => {
    say('I look at how the total is made.')
    tool('Read', { file_path: 'src/cart.ts' }, 'export function totalOf(cart: Cart): number { … }')
    tool(
      'Edit',
      {
        file_path: 'src/cart.ts',
        old_string:
          'export function totalOf(cart: Cart): number {\n  const sum = sumOf(cart.items)\n  const taxed = sum * (1 + cart.taxRate)\n  return round(taxed - cart.discount)\n}',
        new_string:
          'export function totalOf(cart: Cart): number {\n  const sum = sumOf(cart.items)\n  const reduced = Math.max(0, sum - cart.discount)\n  return round(reduced * (1 + cart.taxRate))\n}',
      },
      'The file src/cart.ts has been updated.',
    )
    tool(
      'Write',
      {
        file_path: 'test/cart.test.ts',
        content:
          "import { expect, it } from 'vitest'\nimport { totalOf } from '../src/cart.js'\n\nit('takes the discount off before the tax', () => {\n  expect(totalOf({ items: [100], discount: 20, taxRate: 0.2 })).toBe(96)\n})\n",
      },
      'The file test/cart.test.ts has been written.',
    )
    tool('Bash', { command: 'npm test -- cart' }, ' ✓ test/cart.test.ts (1 test)\n\n Tests  1 passed')
    const answer =
      'The total is right now: **the order was wrong**. The discount was taken off after the tax, so a cart with a discount was taxed in full.\n\n| Cart | Before | Now |\n| --- | ---: | ---: |\n| 100, discount 20, tax 20 % | 100 | 96 |\n\n- `totalOf` takes the discount off first, and never goes below zero\n- a test holds it'
    say(answer)
    succeed(answer)
  },
  'How do I': () => {
    const code = 'const visible = products.filter(({ stock }) => stock > 0)\n\nexport const count = visible.length'
    const answer = `Only those in stock are shown:\n\n\`\`\`ts\n${code}\n\`\`\`\n\n- \`filter\` keeps their order\n- the count follows by itself`
    say(answer)
    succeed(answer)
  },
}

const scene = Object.entries(SCENES).find(([beginning]) => prompt.includes(beginning))
print({
  type: 'system',
  subtype: 'init',
  cwd: process.cwd(),
  model: 'claude-opus-4-6',
  tools: ['Bash', 'Edit', 'Read'],
})
if (scene) scene[1]()
else succeed('Done: the names are the same everywhere now, and the tests pass.')

function think(thinking) {
  assistant({ type: 'thinking', thinking })
}

function say(words) {
  assistant({ type: 'text', text: words })
}

function tool(name, input, output) {
  const id = `toolu_${randomUUID()}`
  assistant({ type: 'tool_use', id, name, input })
  print({ type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: id, content: output }] } })
}

function succeed(result) {
  const usage = { input_tokens: 2400, output_tokens: 310 }
  print({ type: 'result', subtype: 'success', is_error: false, result, num_turns: 1, total_cost_usd: 0.12, usage })
}

function fail(result) {
  print({ type: 'result', subtype: 'error_during_execution', is_error: true, result })
  process.exitCode = 1
}
