import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Me } from '../../src/client/aetheel-client.js'
import { api, onSessionEnd, wordsOf } from './api.js'
import { useAttention } from './frame/attention.js'
import { Logo } from './frame/logo.js'
import { mayOpen, type PageEntry, type PageProps, PAGES } from './frame/pages.js'
import { Palette } from './frame/palette.js'
import { Connection, Sidebar, type SidebarProps } from './frame/sidebar.js'
import { followActivity } from './live.js'
import { LoginPage } from './pages/login.js'
import { Dialog } from './parts/dialog.js'
import { EmptyState } from './parts/empty-state.js'
import { ErrorNote } from './parts/error-note.js'
import { Icon } from './parts/icon.js'
import { Page } from './parts/page.js'
import { Skeleton } from './parts/skeleton.js'
import { ToastList } from './parts/toast-list.js'
import { MeContext, useMe } from './me.js'
import { codeOfLink } from './login-link.js'
import { hrefOf, parseHash, useRoute } from './router.js'
import { useIsNarrow } from './use-is-narrow.js'

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
      // This browser may already be logged in.
      (error: unknown) => look(wordsOf(error)),
    )
  }
  useEffect(() => onSessionEnd(() => setSession({ state: 'away' })), [])
  useEffect(() => {
    enter()
    // If the page is already open, a login link changes only the fragment.
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
          <Shell
            onLogout={() =>
              void api
                .logout()
                .catch(() => {})
                .finally(() => setSession({ state: 'away' }))
            }
          />
        </MeContext.Provider>
      )
  }
}

function Shell({ onLogout }: { onLogout: () => void }) {
  const route = useRoute()
  const main = useRef<HTMLElement>(null)
  const isNarrow = useIsNarrow()
  const [open, setOpen] = useState<'drawer' | 'palette'>()
  const title = PAGES[route.page]?.title ?? 'Not found'
  useEffect(followActivity, [])
  useAttention(title, route.page === 'conversations' ? route.parts[0] : undefined)
  const close = (): void => setOpen(undefined)
  useEffect(close, [route])
  useEffect(() => {
    const open = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return
      event.preventDefault()
      setOpen('palette')
    }
    addEventListener('keydown', open)
    return () => removeEventListener('keydown', open)
  }, [])
  const sidebar: SidebarProps = { route, onLogout, onSearch: () => setOpen('palette') }
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      {isNarrow ? (
        <header class="top">
          <button type="button" class="quiet icon-only" aria-label="Menu" onClick={() => setOpen('drawer')}>
            <Icon name="menu" />
          </button>
          <a class="brand top-title" href={hrefOf('home')}>
            <Logo />
            Aetheel
          </a>
          <Connection />
          <NewButton />
        </header>
      ) : (
        <Sidebar {...sidebar} />
      )}
      <main ref={main} tabIndex={-1}>
        <RoutedPage key={route.page} route={route} />
      </main>
      {open === 'drawer' && isNarrow && (
        <Dialog title="Menu" look="drawer" onClose={close}>
          <Sidebar {...sidebar} />
        </Dialog>
      )}
      {open === 'palette' && <Palette onClose={close} onLogout={onLogout} />}
      <ToastList />
    </div>
  )
}

function NewButton() {
  if (!useMe().scopes.includes('run')) return null
  return (
    <a class="button quiet icon-only" href={hrefOf('new')} aria-label="New conversation">
      <Icon name="plus" />
    </a>
  )
}

function RoutedPage({ route }: PageProps) {
  const me = useMe()
  const entry = PAGES[route.page]
  if (!entry) {
    return (
      <Page title="Not found">
        <EmptyState title="Page not found">
          <a href={hrefOf('home')}>Home</a>
        </EmptyState>
      </Page>
    )
  }
  if (!mayOpen(entry, me)) {
    return (
      <Page title={entry.title}>
        <EmptyState title="Your token does not allow this page">
          <p>
            Log in with an admin token: <code>aetheel tokens create --scope admin</code>
          </p>
        </EmptyState>
      </Page>
    )
  }
  return <LoadedPage entry={entry} route={route} />
}

function LoadedPage({ entry, route }: PageProps & { entry: PageEntry }) {
  const [loaded, setLoaded] = useState<{ Page: ComponentType<PageProps> } | 'failed'>()
  useEffect(() => {
    entry.load().then(
      (Page) => setLoaded({ Page }),
      () => setLoaded('failed'),
    )
  }, [entry])
  if (!loaded) {
    return (
      <Page title={entry.title}>
        <Skeleton />
      </Page>
    )
  }
  if (loaded === 'failed') {
    const words = 'This page did not load. The gateway may have been updated.'
    return (
      <Page title={entry.title}>
        <ErrorNote words={words} onRetry={() => location.reload()} />
      </Page>
    )
  }
  return <loaded.Page route={route} />
}
