import { expect, it } from 'vitest'
import { finishReply } from '../../../src/turns/inbound-reply/finish-reply.js'

const reply = { text: 'hi', notes: [], isError: false }
const file = { path: 'a.png', directory: '/srv' }

it.each([
  ['as it is', {}, reply, reply],
  ['with a prefix', { responsePrefix: '[ada]' }, reply, { ...reply, text: '[ada] hi' }],
  ['with a prefix that has its own gap', { responsePrefix: 'Ada:\n' }, reply, { ...reply, text: 'Ada:\nhi' }],
  [
    'with the prefix once',
    { responsePrefix: '[ada] ' },
    { ...reply, text: '[ada]: hi' },
    { ...reply, text: '[ada]: hi' },
  ],
  [
    'without a prefix where there are no words',
    { responsePrefix: '[ada]' },
    { ...reply, text: '', files: [file] },
    { ...reply, text: '', files: [file] },
  ],
  [
    'with the configured file',
    { mediaUrl: 'https://example.com/a.png' },
    reply,
    { ...reply, files: [{ url: 'https://example.com/a.png' }] },
  ],
  [
    'with its own files',
    { mediaUrl: 'https://example.com/a.png' },
    { ...reply, files: [file] },
    { ...reply, files: [file] },
  ],
])('an answer goes out %s', (_, config, answer, finished) => {
  expect(finishReply(answer, config)).toEqual(finished)
})
