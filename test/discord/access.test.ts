import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AccessLists, howToOpen, mayTalk, type Speaker } from '../../src/channels/discord/access.js'

const RUNS = { numRuns: 500 }
const NO_LISTS: AccessLists = { guilds: [], channels: [], users: [], roles: [] }
const OWNERS = ['owner']

/** Somebody with a role, in a thread of a channel of a server. */
const ANN: Speaker = { userId: 'ann', roleIds: ['dev'], guildId: 'home', channelIds: ['general', 'thread'] }
const DIRECT: Speaker = { userId: 'ann', roleIds: [], channelIds: ['dm'] }

describe('who may talk to the bot', () => {
  it('is nobody but the owners when no list is given', () => {
    const people = [{ ...ANN, userId: 'owner' }, ANN, { ...DIRECT, userId: 'owner' }, DIRECT]
    expect(people.map((speaker) => mayTalk(speaker, NO_LISTS, OWNERS))).toEqual([true, false, true, false])
  })

  it('is nobody at all when there is no list and no owner', () => {
    expect([ANN, DIRECT].map((speaker) => mayTalk(speaker, NO_LISTS, []))).toEqual([false, false])
  })

  it.each<[lists: Partial<AccessLists>, inServer: boolean, inDirect: boolean]>([
    [{ guilds: ['home'] }, true, false],
    [{ guilds: ['other'] }, false, false],
    [{ channels: ['general'] }, true, false],
    [{ channels: ['thread'] }, true, false],
    [{ channels: ['other'] }, false, false],
    [{ channels: ['dm'] }, false, false],
    [{ users: ['ann'] }, true, true],
    [{ users: ['ben'] }, false, false],
    [{ roles: ['dev'] }, true, false],
    [{ roles: ['guest'] }, false, false],
    [{ guilds: ['home'], channels: ['general'] }, true, false],
    [{ guilds: ['home'], channels: ['other'] }, false, false],
    [{ guilds: ['other'], channels: ['general'] }, false, false],
    [{ users: ['ann'], roles: ['guest'] }, true, true],
    [{ users: ['ben'], roles: ['dev'] }, true, false],
    [{ users: ['ben'], roles: ['guest'] }, false, false],
    [{ guilds: ['home'], users: ['ann'] }, true, true],
    [{ guilds: ['home'], users: ['ben'] }, false, false],
    [{ guilds: ['other'], users: ['ann'] }, false, true],
    [{ guilds: ['home'], roles: ['dev'] }, true, false],
    [{ guilds: ['home'], roles: ['guest'] }, false, false],
    [{ channels: ['other'], users: ['ann'], roles: ['dev'] }, false, true],
    [{ guilds: ['home'], channels: ['general'], users: ['ben'], roles: ['dev'] }, true, false],
  ])('with %j: in the server %s, directly %s', (lists, inServer, inDirect) => {
    const given = { ...NO_LISTS, ...lists }
    expect([mayTalk(ANN, given, OWNERS), mayTalk(DIRECT, given, OWNERS)]).toEqual([inServer, inDirect])
  })

  it('is an owner everywhere, whatever the lists say', () => {
    fc.assert(
      fc.property(anySpeaker, anyLists, (speaker, lists) => {
        expect(mayTalk(speaker, lists, [speaker.userId])).toBe(true)
      }),
      RUNS,
    )
  })

  it('is only an owner as long as there is no list, whoever and wherever they are', () => {
    fc.assert(
      fc.property(anySpeaker, someIds, (speaker, ownerIds) => {
        expect(mayTalk(speaker, NO_LISTS, ownerIds)).toBe(ownerIds.includes(speaker.userId))
      }),
      RUNS,
    )
  })

  it('is never more than before when a list of places comes to another', () => {
    const anyTwo = fc.constantFrom<['guilds' | 'channels', 'guilds' | 'channels']>(
      ['guilds', 'channels'],
      ['channels', 'guilds'],
    )
    fc.assert(
      fc.property(anySpeaker, anyLists, anyTwo, oneOrMoreIds, oneOrMoreIds, (speaker, lists, [one, two], ids, more) => {
        const before = { ...lists, [one]: ids, [two]: [] }
        const isOpened = !mayTalk(speaker, before, OWNERS) && mayTalk(speaker, { ...before, [two]: more }, OWNERS)
        expect(isOpened).toBe(false)
      }),
      RUNS,
    )
  })

  it('is never more than before when people are named where everybody there could talk', () => {
    fc.assert(
      fc.property(anySpeaker, anyLists, oneOrMoreIds, oneOrMoreIds, (speaker, lists, guilds, roles) => {
        const before = { ...lists, guilds, users: [], roles: [] }
        const isOpened = !mayTalk(speaker, before, OWNERS) && mayTalk(speaker, { ...before, roles }, OWNERS)
        expect(isOpened).toBe(false)
      }),
      RUNS,
    )
  })

  it('is directly only an owner or who is named', () => {
    fc.assert(
      fc.property(anySpeaker, anyLists, someIds, ({ userId, channelIds }, lists, ownerIds) => {
        const isNamed = [...ownerIds, ...lists.users].includes(userId)
        expect(mayTalk({ userId, roleIds: [], channelIds }, lists, ownerIds)).toBe(isNamed)
      }),
      RUNS,
    )
  })
})

describe('how the bot is opened', () => {
  it('is told with the ids of the person and of the channel, so that threads of it are open, too', () => {
    expect(howToOpen({ userId: '7', roleIds: [], guildId: '1', channelIds: ['10', '55'] })).toBe(
      'I answer only those whom my owner has let in. To let you in, they add your id, `7`, to `discordUsers` in ' +
        'aetheel.json5, or this channel, `10`, to `discordChannels` to let everybody here in; then they start me again.',
    )
  })

  it('is told directly without a channel: naming it there would open nothing', () => {
    expect(howToOpen({ userId: '7', roleIds: [], channelIds: ['10'] })).toBe(
      'I answer only those whom my owner has let in. To let you in, they add your id, `7`, to `discordUsers` in ' +
        'aetheel.json5; then they start me again.',
    )
  })
})

/** So few that they often meet. */
const anyId = fc.constantFrom<string[]>('1', '2', '3', '4', 'owner')
const someIds = fc.uniqueArray(anyId, { maxLength: 3 })
const oneOrMoreIds = fc.uniqueArray(anyId, { minLength: 1, maxLength: 3 })
const anyLists: fc.Arbitrary<AccessLists> = fc.record({
  guilds: someIds,
  channels: someIds,
  users: someIds,
  roles: someIds,
})
const anySpeaker: fc.Arbitrary<Speaker> = fc.record(
  { userId: anyId, roleIds: someIds, guildId: anyId, channelIds: oneOrMoreIds },
  { requiredKeys: ['userId', 'roleIds', 'channelIds'] },
)
