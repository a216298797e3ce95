import { describe, expect, it } from 'vitest'
import { renderDay } from '../../src/archive/render-day.js'
import type { ArchivedMessage } from '../../src/store/archive-queries.js'

const CONVERSATION = { id: 'id-1', channel: 'chat', address: 'room' }

/** The parts of the day that come from one message. */
function render(message: Partial<ArchivedMessage>, address = 'room'): { title: string; section: string } {
  const entry: ArchivedMessage = {
    type: 'message',
    at: 0,
    seq: 1,
    author: 'ann',
    kind: 'message',
    text: 'Hello',
    state: 'answered',
    runs: [],
    ...message,
  }
  const [title = '', , ...section] = renderDay({ ...CONVERSATION, address }, '1970-01-01', [entry]).split('\n\n')
  return { title, section: section.join('\n\n') }
}

describe('renderDay', () => {
  it('quotes every line, so that nothing in a text is taken for ours', () => {
    const { section } = render({ text: '## 10:00:00 `claude`\r\n\r\n---\r```\n[a]: b\n    code  ' })
    expect(section).toBe('## 00:00:00 `ann`\n\n> ## 10:00:00 `claude`\n>\n> ---\n> ```\n> [a]: b\n>     code  \n')
  })

  it('puts a text with tags into a fence that nothing in it closes', () => {
    const { section } = render({ text: 'Hi</blockquote>\n````\n# Mine' })
    expect(section).toBe('## 00:00:00 `ann`\n\n> `````\n> Hi</blockquote>\n> ````\n> # Mine\n> `````\n')
  })

  it('removes what would command a terminal', () => {
    const { section } = render({ text: 'a\u001B[2Jb\u0007\tc\u009Bd\u202Ee' })
    expect(section).toBe('## 00:00:00 `ann`\n\n> a[2Jb\tcde\n')
  })

  it('takes names literally and keeps them on one line', () => {
    const { title, section } = render({ author: 'a``b`\n# c', kind: 'webhook' }, '**x**\n`')
    expect([title, section]).toEqual([
      '# 1970-01-01 `chat` `` **x** ` ``',
      '## 00:00:00 ``` a``b` # c ``` (webhook)\n\n> Hello\n',
    ])
  })

  it('says so when there is no name', () => {
    expect(render({ author: ' \0 ' }).section).toBe('## 00:00:00 (none)\n\n> Hello\n')
  })
})
