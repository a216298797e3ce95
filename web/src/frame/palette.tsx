import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { titleOf } from '../conversation.js'
import { useConversations } from '../conversations/use-conversations.js'
import { api } from '../api.js'
import { useMe } from '../me.js'
import { Dialog } from '../parts/dialog.js'
import { Icon, type IconName } from '../parts/icon.js'
import { Option } from '../parts/option.js'
import { documentationHref, hrefOf } from '../router.js'
import { applyTheme, THEMES } from '../theme.js'
import { useResource } from '../use-resource.js'
import { listedPages } from './pages.js'

const TYPING_MS = 200
const SHOWN_CONVERSATIONS = 8

interface Entry {
  id: string
  words: string
  icon: IconName
  /** Shown next to it. */
  note?: string
  act: () => void
}

/** Search and commands: conversations by their messages, projects, pages, actions. */
export function Palette({ onClose, onLogout }: { onClose: () => void; onLogout: () => void }) {
  const [typed, setTyped] = useState('')
  const [chosen, setChosen] = useState(0)
  const groups = useGroups(typed.trim(), onLogout)
  const entries = groups.flatMap((group) => group.entries)
  const list = useId()
  const frame = useRef<HTMLDivElement>(null)
  const at = Math.min(chosen, entries.length - 1)
  useEffect(() => frame.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' }), [at])
  const choose = (entry: Entry | undefined): void => {
    if (!entry) return
    onClose()
    entry.act()
  }
  return (
    <Dialog title="Search" look="palette" onClose={onClose}>
      <div class="palette-field">
        <Icon name="search" />
        <input
          role="combobox"
          aria-label="Search conversations, projects, pages and actions"
          aria-expanded="true"
          aria-controls={list}
          aria-activedescendant={entries[at] && `${list}-${entries[at].id}`}
          placeholder="Search or jump to…"
          maxLength={500}
          value={typed}
          onInput={({ currentTarget: { value } }) => {
            setTyped(value)
            setChosen(0)
          }}
          onKeyDown={(event) => {
            if (event.isComposing) return
            if (event.key === 'Enter') choose(entries[at])
            else if (event.key === 'ArrowDown') setChosen((at + 1) % entries.length)
            else if (event.key === 'ArrowUp') setChosen((at - 1 + entries.length) % entries.length)
            else return
            event.preventDefault()
          }}
        />
        <kbd>Esc</kbd>
      </div>
      <div ref={frame} id={list} class="palette-list" role="listbox" aria-label="Results">
        {groups.map(
          ({ title, entries: listed }) =>
            listed.length > 0 && (
              <div key={title} role="group" aria-label={title}>
                <div class="palette-group" aria-hidden="true">
                  {title}
                </div>
                {listed.map((entry) => (
                  <Option
                    key={entry.id}
                    id={`${list}-${entry.id}`}
                    icon={entry.icon}
                    isChosen={entry === entries[at]}
                    onPoint={() => setChosen(entries.indexOf(entry))}
                    onChoose={() => choose(entry)}
                  >
                    <span class="option-words">{entry.words}</span>
                    {entry.note !== undefined && <span class="muted">{entry.note}</span>}
                  </Option>
                ))}
              </div>
            ),
        )}
      </div>
    </Dialog>
  )
}

function useGroups(typed: string, onLogout: () => void): Array<{ title: string; entries: Entry[] }> {
  const me = useMe()
  const [query, setQuery] = useState(typed)
  useEffect(() => {
    const timer = setTimeout(() => setQuery(typed), TYPING_MS)
    return () => clearTimeout(timer)
  }, [typed])
  const { rows, isLoading } = useConversations(query === '' ? {} : { q: query })
  const isFound = query === typed && !isLoading
  const { value: projects = [] } = useResource(() => api.projects.list(), [])
  const go = (href: string) => (): void => {
    location.hash = href
  }
  const isMeant = ({ words }: Entry): boolean => isIn(words, typed)
  const mayRun = me.scopes.includes('run')
  // Until search results arrive, filter by title.
  const found = typed === '' || isFound ? rows : rows.filter((row) => isIn(titleOf(row), typed))
  const conversations = found.slice(0, SHOWN_CONVERSATIONS).map((row): Entry => ({
    id: row.id,
    words: titleOf(row),
    icon: 'chat',
    ...(row.project_id !== null && { note: row.project_id }),
    act: go(hrefOf('conversations', row.id)),
  }))
  const actions: Entry[] = [
    ...(mayRun ? [{ id: 'new', words: 'New conversation', icon: 'plus' as const, act: go(hrefOf('new')) }] : []),
    ...listedPages(me).map(({ name, title, icon }): Entry => ({
      id: `page-${name}`,
      words: title,
      icon,
      note: 'Page',
      act: go(hrefOf(name)),
    })),
    ...THEMES.map((theme): Entry => ({
      id: `theme-${theme}`,
      words: `Theme: ${theme === 'system' ? 'auto' : theme}`,
      icon: theme === 'dark' ? 'moon' : theme === 'light' ? 'sun' : 'auto',
      act: () => applyTheme(theme),
    })),
    { id: 'logout', words: 'Log out', icon: 'logout', act: onLogout },
  ]
  const projectEntries = projects.map(({ id, name }): Entry => ({
    id: `project-${id}`,
    words: name,
    icon: 'folder',
    note: 'Project',
    act: go(hrefOf('projects', id)),
  }))
  const documentation: Entry = {
    id: 'documentation',
    words: typed === '' ? 'Open the documentation' : `Search the documentation for “${typed}”`,
    icon: 'book',
    act: () => void window.open(documentationHref(typed), '_blank', 'noopener'),
  }
  return [
    { title: 'Conversations', entries: conversations },
    { title: 'Projects', entries: typed === '' ? [] : projectEntries.filter(isMeant) },
    { title: 'Go to', entries: actions.filter(isMeant) },
    // Enter must not open it before the search results arrive.
    { title: 'Help', entries: isFound ? [documentation] : [] },
  ]
}

function isIn(words: string, typed: string): boolean {
  return words.toLowerCase().includes(typed.toLowerCase())
}
