import { useState } from 'preact/hooks'
import { api } from '../api.js'
import { type Listed, useConversations } from '../conversations/use-conversations.js'
import { titleOf } from '../conversation.js'
import { useLive } from '../live.js'
import { useMe } from '../me.js'
import { Icon } from '../parts/icon.js'
import { Skeleton } from '../parts/skeleton.js'
import { StateMark } from '../parts/state-mark.js'
import { documentationHref, type Route, hrefOf } from '../router.js'
import { type Resource, useResource } from '../use-resource.js'
import { applyTheme, currentTheme, THEMES } from '../theme.js'
import { Logo } from './logo.js'
import { listedPages } from './pages.js'

const SHOWN = 30

export interface SidebarProps {
  route: Route
  onSearch: () => void
  onLogout: () => void
}

export function Sidebar({ route, onSearch, onLogout }: SidebarProps) {
  const me = useMe()
  return (
    <div class="sidebar">
      <div class="sidebar-head">
        <a class="brand" href={hrefOf('home')}>
          <Logo />
          Aetheel
        </a>
        <Connection />
      </div>
      <div class="sidebar-actions">
        {me.scopes.includes('run') && (
          <a class="button wide" href={hrefOf('new')}>
            <Icon name="plus" />
            New conversation
          </a>
        )}
        <button type="button" class="quiet wide" onClick={onSearch}>
          <Icon name="search" />
          Search
          <kbd>{isApple() ? '⌘K' : 'Ctrl K'}</kbd>
        </button>
      </div>
      <Recent openId={route.page === 'conversations' ? route.parts[0] : undefined} />
      <nav class="pages" aria-label="Pages">
        <ul>
          {listedPages(me).map(({ name, title, icon }) => (
            <li key={name}>
              <a
                class="side-link"
                href={hrefOf(name)}
                aria-current={route.page === name && !isOneConversation(route) ? 'page' : undefined}
              >
                <Icon name={icon} />
                {title}
                {name === 'home' && <AskedBadge />}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="account">
        <span class="account-name" title={`Logged in with the token "${me.name}"`}>
          {me.name}
        </span>
        <span>
          <a
            class="button quiet icon-only"
            href={documentationHref()}
            target="_blank"
            aria-label="Documentation"
            title="Documentation"
          >
            <Icon name="book" />
          </a>
          <ThemeButton />
          <button type="button" class="quiet icon-only" aria-label="Log out" title="Log out" onClick={onLogout}>
            <Icon name="logout" />
          </button>
        </span>
      </div>
    </div>
  )
}

function isOneConversation({ page, parts }: Route): boolean {
  return page === 'conversations' && parts.length > 0
}

export function isApple(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.userAgent)
}

function Recent({ openId }: { openId: string | undefined }) {
  const { rows, isLoading } = useConversations({})
  const { value: pinned = [] } = usePinned(rows)
  const shown = [...pinned, ...rows.filter(({ is_pinned: isPinned }) => !isPinned).slice(0, SHOWN)]
  return (
    <nav class="recent" aria-label="Recent conversations">
      <div class="recent-head">Recent</div>
      {isLoading && rows.length === 0 && <Skeleton lines={5} />}
      {!isLoading && rows.length === 0 && <p class="recent-head">No conversations yet</p>}
      <ul>
        {shown.map((row) => (
          <li key={row.id}>
            <RecentLink row={row} isOpen={row.id === openId} />
          </li>
        ))}
      </ul>
    </nav>
  )
}

/** All pinned conversations, however old. */
function usePinned(rows: Listed[]): Resource<Listed[]> {
  const { conversations } = useLive()
  const known = new Map([...rows, ...conversations.values()].map(({ id, is_pinned: isPinned }) => [id, isPinned]))
  const changes = [...known].filter(([, isPinned]) => isPinned).map(([id]) => id)
  const resource = useResource(
    async () => (await api.conversations.list({ pinned: 'true', limit: SHOWN })).conversations,
    [changes.join()],
  )
  const now = resource.value
    ?.map((row) => ({ ...row, ...conversations.get(row.id) }))
    .filter(({ is_pinned: isPinned, is_archived: isArchived }) => isPinned && !isArchived)
  return { ...resource, ...(now && { value: now }) }
}

function RecentLink({ row, isOpen }: { row: Listed; isOpen: boolean }) {
  return (
    <a class="side-link" href={hrefOf('conversations', row.id)} aria-current={isOpen ? 'page' : undefined}>
      {row.is_pinned && <Icon name="pin" />}
      <span class="side-title">{titleOf(row)}</span>
      <StateMark conversation={row} />
    </a>
  )
}

/** The number of open questions. */
function AskedBadge() {
  const { conversations } = useLive()
  const asked = [...conversations.values()].reduce((sum, conversation) => sum + conversation.asked, 0)
  return asked === 0 ? null : <span class="badge">{asked} waiting for you</span>
}

export function Connection() {
  const { connection } = useLive()
  const words = { connecting: 'Connecting…', live: 'Live', lost: 'Reconnecting…' }[connection]
  return (
    <span class={`connection ${connection}`} role="status">
      {words}
    </span>
  )
}

const THEME_NAMES = { system: 'Auto', dark: 'Dark', light: 'Light' }
const THEME_ICONS = { system: 'auto', dark: 'moon', light: 'sun' } as const

function ThemeButton() {
  const [theme, setTheme] = useState(currentTheme)
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system'
  return (
    <button
      type="button"
      class="quiet icon-only"
      aria-label={`Theme: ${THEME_NAMES[theme]}`}
      title={`Theme: ${THEME_NAMES[theme]}. Click for ${THEME_NAMES[next]}.`}
      onClick={() => {
        applyTheme(next)
        setTheme(next)
      }}
    >
      <Icon name={THEME_ICONS[theme]} />
    </button>
  )
}
