import { describe, expect, it } from 'vitest'
import { terminalSafe } from '../../src/cli/terminal-safe.js'

const ACTING = '\u001B]0;title\u0007\u001B[31mred\r\nover\u0008\u009B31m\tend\u202Eegami\u2066.\u061C'

function written(isTTY: boolean): string {
  let seen = ''
  terminalSafe({ isTTY, write: (text) => ((seen += String(text)), true) }).write(ACTING)
  return seen
}

describe('what an agent says', () => {
  it('does not act on a terminal', () => {
    expect(written(true)).toBe(']0;title[31mred\nover31m\tendegami.')
  })

  it('reaches a file or a pipe to the character', () => {
    expect(written(false)).toBe(ACTING)
  })
})
