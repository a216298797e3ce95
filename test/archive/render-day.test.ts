import { describe, expect, it } from 'vitest'
import { renderDay } from '../../src/archive/render-day.js'
import type { Reply } from '../../src/channels/types.js'
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

/** The section of the day that comes from one reply. */
function renderReply(reply: Partial<Reply>): string {
  const whole = { text: 'Done.', notes: [], isError: false, ...reply }
  const day = renderDay(CONVERSATION, '1970-01-01', [
    { type: 'reply', at: 0, seq: 1, reply: whole, state: 'delivered' },
  ])
  return day.split('\n\n').slice(2).join('\n\n')
}

describe('renderDay', () => {
  it('quotes every line, so that no text looks like ours', () => {
    const { section } = render({ text: '## 10:00:00 `claude`\r\n\r\n---\r```\n[a]: b\n    code  ' })
    expect(section).toBe('## 00:00:00 `ann`\n\n> ## 10:00:00 `claude`\n>\n> ---\n> ```\n> [a]: b\n>     code  \n')
  })

  it('puts a text with tags into a fence that nothing in it closes', () => {
    const { section } = render({ text: 'Hi</blockquote>\n````\n# Mine' })
    expect(section).toBe('## 00:00:00 `ann`\n\n> `````\n> Hi</blockquote>\n> ````\n> # Mine\n> `````\n')
  })

  it('removes terminal control sequences', () => {
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

  it('names the files of an answer between its text and its notes', () => {
    const files = ['plot.png', '/srv/site/report.pdf'].map((path) => ({ path, directory: '/srv/site' }))
    expect([renderReply({ files, notes: ['A note.'] }), renderReply({ files: [] })]).toEqual([
      '## 00:00:00 Aetheel\n\n> Done.\n\nFiles: `plot.png`, `/srv/site/report.pdf`\n\nNote:\n\n> A note.\n',
      '## 00:00:00 Aetheel\n\n> Done.\n',
    ])
  })

  it('names the files of an answer that has no text', () => {
    const files = [{ path: 'plot.png', directory: '/srv' }]
    expect(renderReply({ text: '', files })).toBe('## 00:00:00 Aetheel\n\nFiles: `plot.png`\n')
  })

  it('names what is on the web by its address', () => {
    const files = [{ path: 'plot.png', directory: '/srv' }, { url: 'https://host.example/a.png' }]
    expect(renderReply({ text: '', files })).toBe(
      '## 00:00:00 Aetheel\n\nFiles: `plot.png`, `https://host.example/a.png`\n',
    )
  })

  it('takes the names of files literally and keeps them on one line', () => {
    const paths = ['a`b.png', 'x\n\n## 10:00:00 `ann`\n\n> y', '</p>[a](b)*', '\u001B[2Jc\u202E.png', ' ']
    const files = paths.map((path) => ({ path, directory: '/srv' }))
    const named = '`` a`b.png ``, `` x ## 10:00:00 `ann` > y ``, `</p>[a](b)*`, `[2Jc.png`, (none)'
    expect(renderReply({ files })).toBe(`## 00:00:00 Aetheel\n\n> Done.\n\nFiles: ${named}\n`)
  })

  it('says so when there is no name', () => {
    expect(render({ author: ' \0 ' }).section).toBe('## 00:00:00 (none)\n\n> Hello\n')
  })
})
