// Gets the attention of a person who is looking elsewhere: a toast, and a mark in the tab's title and icon.

import { useEffect, useRef } from 'preact/hooks'
import type { Conversation } from '../../../src/client/aetheel-client.js'
import { titleOf } from '../conversation.js'
import { type LiveState, useLive } from '../live.js'
import { hrefOf } from '../router.js'
import { toast } from '../toasts.js'
import iconUrl from '../icon.svg?url'
import alertIconUrl from '../icon-alert.svg?url'

const SETTLED_MS = 200

type Heard = Pick<Conversation, 'state' | 'asked'>

export type News = 'asked' | 'ended'

/** What happened to a conversation since its last update; nothing if it is new. */
export function newsOf(before: Heard | undefined, { state, asked }: Heard): News | undefined {
  if (!before) return undefined
  if (asked > before.asked) return 'asked'
  return before.state !== 'idle' && state === 'idle' ? 'ended' : undefined
}

const ENDS = { answered: 'Answered', failed: 'Failed', refused: 'Failed', cancelled: undefined, dropped: undefined }

/** The toast's title; none if a person ended the run. */
function wordsOf(news: News, { id, has_failed: hasFailed }: Conversation, { turns }: LiveState): string | undefined {
  if (news === 'asked') return 'Waiting for you'
  const end = [...turns.values()].findLast(({ conversationId, model }) => conversationId === id && model.end)?.model.end
  if (end) return ENDS[end.status]
  return hasFailed ? 'Failed' : 'Answered'
}

/** `openId` is the conversation on screen. */
export function useAttention(pageTitle: string, openId: string | undefined): void {
  const live = useLive()
  const heard = useRef(new Map<string, Heard>())
  const opened = useRef(new Set<string>())
  const unseen = useRef(0)
  if (openId !== undefined) opened.current.add(openId)
  const asked = [...live.conversations.values()].reduce((sum, conversation) => sum + conversation.asked, 0)
  const mark = (): void => {
    const count = asked + unseen.current
    document.title = `${count > 0 ? `(${count}) ` : ''}${pageTitle} · Aetheel`
    document.querySelector('link[rel="icon"]')?.setAttribute('href', count > 0 ? alertIconUrl : iconUrl)
  }
  useEffect(() => {
    for (const conversation of live.conversations.values()) {
      const { id } = conversation
      const news = newsOf(heard.current.get(id), conversation)
      heard.current.set(id, conversation)
      if (news === undefined || (id === openId && !document.hidden)) continue
      // Other people's conversations are reported only when an agent asks.
      if (news === 'ended' && !opened.current.has(id)) continue
      // The event that says how the turn ended comes right after.
      setTimeout(() => {
        const title = wordsOf(news, conversation, live)
        if (title !== undefined) toast({ title, what: titleOf(conversation), href: hrefOf('conversations', id) })
      }, SETTLED_MS)
      if (document.hidden && news === 'ended') unseen.current += 1
    }
    mark()
  }, [live])
  useEffect(() => {
    const look = (): void => {
      if (document.hidden) return
      unseen.current = 0
      mark()
    }
    look()
    document.addEventListener('visibilitychange', look)
    return () => document.removeEventListener('visibilitychange', look)
  }, [pageTitle, asked])
}
