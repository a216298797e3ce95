import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Me } from '../../src/client/aetheel-client.js'
import { api, onSessionEnd, wordsOf } from './api.js'
import { followActivity, useLive } from './live.js'
import { LoginPage } from './pages/login.js'
import { NowPage } from './pages/now.js'
import { ErrorNote } from './parts/error-note.js'
import { Page } from './parts/page.js'
import { MeContext } from './me.js'
import { codeOfLink } from './login-link.js'
import { type Route, hrefOf, parseHash, useRoute } from './router.js'
import { applyTheme, currentTheme, THEMES } from './theme.js'

export interface PageProps {
  route: Route
}

interface PageEntry {
  title: string
  /** Those of the navigation. */
  isListed: boolean
  load: () => Promise<ComponentType<PageProps>>
}

const PAGES: Partial<Record<string, PageEntry>> = {
  now: { title: 'Now', isListed: true, load: async () => NowPage },
  conversations: {
    title: 'Conversations',
    isListed: true,
    load: async () => (await import('./pages/conversations.js')).ConversationsPage,
  },
  projects: {
    title: 'Projects',
    isListed: true,
    load: async () => (await import('./pages/projects.js')).ProjectsPage,
  },
  agents: { title: 'Agents', isListed: true, load: async () => (await import('./pages/agents.js')).AgentsPage },
  queue: { title: 'Queue', isListed: true, load: async () => (await import('./pages/queue.js')).QueuePage },
  credentials: {
    title: 'Credentials',
    isListed: true,
    load: async () => (await import('./pages/credentials.js')).CredentialsPage,
  },
  figures: { title: 'Figures', isListed: true, load: async () => (await import('./pages/figures.js')).FiguresPage },
  'first-steps': {
    title: 'First steps',
    isListed: false,
    load: async () => (await import('./pages/first-steps.js')).FirstStepsPage,
  },
}

type Session =
  | { state: 'unknown' }
  | { state: 'away'; note?: string }
  | { state: 'failed'; words: string }
  | { state: 'in'; me: Me }

export function App() {
  const [session, setSession] = useState<Session>({ state: 'unknown' })
  const look = (note?: string): void => {
    api.me().then(
      (me) => setSession({ state: 'in', me }),
      (error: unknown) =>
        setSession((before) => {
          if (before.state !== 'away') return { state: 'failed', words: wordsOf(error) }
          return note === undefined ? before : { state: 'away', note }
        }),
    )
  }
  const enter = (): void => {
    const code = codeOfLink()
    if (code === undefined) return look()
    api.loginWithCode(code).then(
      (me) => setSession({ state: 'in', me }),
      // This browser may be logged in all the same.
      (error: unknown) => look(wordsOf(error)),
    )
  }
  useEffect(() => onSessionEnd(() => setSession({ state: 'away' })), [])
  useEffect(() => {
    enter()
    // A link opened where the page is already changes only what stands behind the #.
    const follow = (): void => {
      if (parseHash(location.hash).page === 'login') enter()
    }
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  switch (session.state) {
    case 'unknown':
      return null
    case 'away':
      return <LoginPage note={session.note} onLogin={(me) => setSession({ state: 'in', me })} />
    case 'failed':
      return (
        <main class="alone">
          <ErrorNote words={session.words} onRetry={() => look()} />
        </main>
      )
    default:
      return (
        <MeContext.Provider value={session.me}>
          <Shell onLogout={() => setSession({ state: 'away' })} />
        </MeContext.Provider>
      )
  }
}

function Shell({ onLogout }: { onLogout: () => void }) {
  const route = useRoute()
  const main = useRef<HTMLElement>(null)
  const title = PAGES[route.page]?.title ?? 'Not found'
  useEffect(followActivity, [])
  useEffect(() => {
    document.title = `${title} · Aetheel`
  }, [title])
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <header class="top">
        <a class="brand" href={hrefOf('now')}>
          Aetheel
        </a>
        <nav aria-label="Pages">
          {Object.entries(PAGES).map(([name, entry]) =>
            entry?.isListed ? (
              <a key={name} href={hrefOf(name)} aria-current={route.page === name ? 'page' : undefined}>
                {entry.title}
                {name === 'now' && <AskedBadge />}
              </a>
            ) : null,
          )}
        </nav>
        <div class="top-tools">
          <Connection />
          <ThemeButton />
          <button
            type="button"
            class="quiet"
            onClick={() => {
              void api.logout().then(onLogout, onLogout)
            }}
          >
            Log out
          </button>
        </div>
      </header>
      <main ref={main} tabIndex={-1}>
        <RoutedPage key={route.page} route={route} />
      </main>
    </div>
  )
}

function RoutedPage({ route }: PageProps) {
  const entry = PAGES[route.page]
  const [loaded, setLoaded] = useState<{ Page: ComponentType<PageProps> } | { words: string }>()
  const load = (): void => {
    setLoaded(undefined)
    entry?.load().then(
      (Page) => setLoaded({ Page }),
      () => setLoaded({ words: 'This page did not load. There may be a newer one: reload.' }),
    )
  }
  useEffect(load, [entry])
  if (!entry) {
    return (
      <Page title="Not found">
        <p>
          There is no such page. <a href={hrefOf('now')}>To what goes on now</a>
        </p>
      </Page>
    )
  }
  if (!loaded) return null
  if ('words' in loaded) return <ErrorNote words={loaded.words} onRetry={() => location.reload()} />
  return <loaded.Page route={route} />
}

/** How many questions of agents wait. */
function AskedBadge() {
  const { conversations } = useLive()
  const asked = [...conversations.values()].reduce((sum, conversation) => sum + conversation.asked, 0)
  return asked === 0 ? null : <span class="badge">{asked} to answer</span>
}

function Connection() {
  const { connection } = useLive()
  const words = { connecting: 'Connecting…', live: 'Live', lost: 'Reconnecting…' }[connection]
  return (
    <span class={`connection ${connection}`} role="status">
      {words}
    </span>
  )
}

function ThemeButton() {
  const [theme, setTheme] = useState(currentTheme)
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system'
  return (
    <button
      type="button"
      class="quiet"
      title={`Colours: ${theme}. Press for ${next}.`}
      onClick={() => {
        applyTheme(next)
        setTheme(next)
      }}
    >
      {{ system: 'Auto', dark: 'Dark', light: 'Light' }[theme]}
      <span class="hidden"> colours</span>
    </button>
  )
}
