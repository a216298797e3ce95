import { TeamMemberMembershipState, TeamMemberRole } from 'discord.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AccessLists, howToGetAccess, mayTalk, type Speaker } from '../../../src/channels/discord/access.js'
import { ownersOf } from '../../../src/channels/discord/identity.js'
import { user } from './samples.js'

const RUNS = { numRuns: 500 }
const NO_LISTS: AccessLists = { guilds: [], channels: [], users: [], roles: [] }
const OWNERS = ['owner']

/** A person with a role, in a thread of a server's channel. */
const ANN: Speaker = { userId: 'ann', roleIds: ['dev'], guildId: 'home', channelIds: ['general', 'thread'] }
const DIRECT: Speaker = { userId: 'ann', roleIds: [], channelIds: ['dm'] }

describe('the owners of an application', () => {
  const { Accepted, Invited } = TeamMemberMembershipState
  const member = (id: string, membership_state: TeamMemberMembershipState) => ({
    user: user(id),
    membership_state,
    team_id: '7',
    role: TeamMemberRole.Admin,
    permissions: ['*'] as ['*'],
  })
  const team = { id: '7', icon: null, name: 'crew', owner_user_id: '2' }

  it('are the one person to whom it belongs', () => {
    expect(ownersOf({ owner: user('1'), team: null })).toEqual([user('1')])
  })

  it('are the members of its team, its owner first, and nobody who was only invited', () => {
    const members = [member('1', Accepted), member('2', Accepted), member('3', Invited)]
    expect(ownersOf({ owner: user('9'), team: { ...team, members } })).toEqual([user('2'), user('1')])
  })

  it('are nobody when nobody has taken the invitation', () => {
    expect(ownersOf({ owner: user('9'), team: { ...team, members: [member('3', Invited)] } })).toEqual([])
  })
})

describe('who may talk to the bot', () => {
  it('is only the owners if there is no list', () => {
    const people = [{ ...ANN, userId: 'owner' }, ANN, { ...DIRECT, userId: 'owner' }, DIRECT]
    expect(people.map((speaker) => mayTalk(speaker, NO_LISTS, OWNERS))).toEqual([true, false, true, false])
  })

  it('is nobody if there is no list and no owner', () => {
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

  it('is, in direct messages, only an owner or a listed person', () => {
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
  const there: Speaker = { userId: '7', roleIds: [], guildId: '1', channelIds: ['10', '55'] }
  const direct: Speaker = { userId: '7', roleIds: [], channelIds: ['10'] }
  const before = 'I only answer people my owner has let in. To let you in, they can '
  const allow = 'type `/allow 7`'
  const server = 'this server, `1`, to `discordGuilds`'
  // Not the thread: the channel's other threads would stay closed.
  const channel = 'this channel, `10`, to `discordChannels`'
  const add = (what: string): string => `add ${what} in aetheel.json5 and restart me`

  it.each<[title: string, speaker: Speaker, lists: Partial<AccessLists>, what: string]>([
    ['while nobody is let in', there, {}, `${allow} here, or, to let everyone here in, ${add(channel)}`],
    ['directly', direct, {}, allow],
    ['directly, where only places are open', direct, { guilds: ['1'], channels: ['10'] }, allow],
    ['where others are', there, { users: ['8'] }, `${allow} here`],
    ['where a role is', there, { roles: ['9'] }, `${allow} here`],
    ['in another server', there, { guilds: ['2'] }, add(server)],
    ['in another channel', there, { channels: ['11'] }, add(channel)],
    [
      'in another channel of another server, where others are',
      there,
      { guilds: ['2'], channels: ['11'], users: ['8'] },
      `${add(`${server} and ${channel}`)}, then ${allow}`,
    ],
    ['in another server, being named already', there, { guilds: ['2'], users: ['7'] }, add(server)],
  ])('is explained %s', (_, speaker, lists, what) => {
    expect(howToGetAccess(speaker, { ...NO_LISTS, ...lists })).toBe(`${before}${what}.`)
  })

  it('is explained so that it works, and in a server shuts nobody out', () => {
    fc.assert(
      fc.property(anySpeaker, anySpeaker, anyLists, fc.boolean(), (speaker, other, lists, isAdmitted) => {
        fc.pre(!mayTalk(speaker, lists, OWNERS, { isAdmitted }))
        const advice = howToGetAccess(speaker, lists, { isAdmitted })
        // Either way is enough.
        const ways = advice.split(', or ').map((way) => {
          const opened = structuredClone(lists)
          for (const [, id = '', list = ''] of way.matchAll(/`([^`]+)`, to `discord(\w+)`/g)) {
            opened[list.toLowerCase() as keyof AccessLists].push(id)
          }
          return { opened, isAdmitted: isAdmitted || way.includes('`/allow ') }
        })
        const isShutOut = (opened: AccessLists) => mayTalk(other, lists, OWNERS) && !mayTalk(other, opened, OWNERS)
        const outcomes = ways.map(({ opened, ...admission }) => [
          mayTalk(speaker, opened, OWNERS, admission),
          isShutOut(opened),
        ])
        expect(outcomes).toEqual(ways.map(() => [true, false]))
      }),
      RUNS,
    )
  })

  it('is the same for who was let in by a command as for who is listed where a list of people is', () => {
    fc.assert(
      fc.property(anySpeaker, anyLists, oneOrMoreIds, (speaker, lists, users) => {
        const listed = { ...lists, users: [...users, speaker.userId] }
        expect(mayTalk(speaker, lists, OWNERS, { isAdmitted: true })).toBe(mayTalk(speaker, listed, OWNERS))
      }),
      RUNS,
    )
  })
})

/** So few that they often collide. */
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
