import { describe, expect, it } from 'vitest'
import { inboundSchema } from '../../src/config/inbound.js'
import { parseTarget } from '../../src/config/target.js'
import { findDestination } from '../../src/schedule/destination.js'

const CHANNEL = '123456789012345678'
const THREAD = '876543210987654321'
const SERVED = ['terminal', 'discord', 'whatsapp']

describe('a target', () => {
  it.each([
    ['whatsapp:+4915112345678', { channel: 'whatsapp', address: '+4915112345678' }],
    [' +49 (151) 123-45678 ', { channel: 'whatsapp', address: '+4915112345678' }],
    [`discord:${CHANNEL}`, { channel: 'discord', address: CHANNEL }],
    [`discord:${CHANNEL}/${THREAD}`, { channel: 'discord', address: `${CHANNEL}/${THREAD}` }],
    ['terminal:default', { channel: 'terminal', address: 'default' }],
  ])('may be written as %s', (text, target) => {
    expect(parseTarget(text)).toEqual(target)
  })

  it.each([
    ['whatsapp:0151', '"0151" is not a phone number in international format, such as +4915112345678.'],
    ['+49abc', '"+49abc" is not a phone number in international format, such as +4915112345678.'],
    ['discord:general', '"general" is not a Discord channel id.'],
    ['terminal:', 'Name the terminal conversation'],
    ['ann', '"ann" is not a recipient. Write whatsapp:+4915112345678, discord:<channel id> or terminal:'],
    ['fax:1', 'Unknown channel "fax". Write whatsapp:+4915112345678, discord:<channel id> or'],
  ])('written as %s is refused with what to write', (text, problem) => {
    expect(() => parseTarget(text)).toThrow(problem)
  })

  it('on a channel that is not served is refused', () => {
    const target = parseTarget('+4915112345678')
    expect(() => findDestination(target, { projects: [] }, ['terminal', 'discord'])).toThrow(
      'This gateway has no channel whatsapp, only terminal, discord. Set up WhatsApp first.',
    )
  })

  it('on Discord is a place with the project of its channel', () => {
    const config = { projects: [{ id: 'site', directory: '/srv/site', discordChannels: [CHANNEL] }] }
    const found = [CHANNEL, `${CHANNEL}/${THREAD}`, THREAD].map((address) =>
      findDestination({ channel: 'discord', address }, config, SERVED),
    )
    expect(found).toEqual([
      { channel: 'discord', place: { address: CHANNEL, projectId: 'site' } },
      { channel: 'discord', place: { address: `${CHANNEL}/${THREAD}`, parent: CHANNEL, projectId: 'site' } },
      { channel: 'discord', place: { address: THREAD } },
    ])
  })

  it('on WhatsApp is the person, even if all share a session', () => {
    const target = parseTarget('+4915112345678')
    const { reply } = inboundSchema.parse({ reply: { agent: { kind: 'claude' }, session: { scope: 'global' } } })
    expect([
      findDestination(target, { projects: [] }, SERVED),
      findDestination(target, { projects: [], inbound: { reply } }, SERVED),
    ]).toEqual([
      { channel: 'whatsapp', place: { address: '+4915112345678', isPrivate: true }, author: '+4915112345678' },
      { channel: 'whatsapp', place: { address: 'global' }, author: '+4915112345678' },
    ])
  })
})
