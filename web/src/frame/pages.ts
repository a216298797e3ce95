// The pages: their titles, who may open them, and how they are loaded.

import type { ComponentType } from 'preact'
import type { Me } from '../../../src/client/aetheel-client.js'
import { HomePage } from '../pages/home.js'
import type { IconName } from '../parts/icon.js'
import type { Route } from '../router.js'

export interface PageProps {
  route: Route
}

export interface PageEntry {
  title: string
  /** Pages with an icon are listed in the navigation. */
  icon?: IconName
  /** Default: everyone. */
  isFor?: (me: Me) => boolean
  load: () => Promise<ComponentType<PageProps>>
}

const isOwner = ({ scopes }: Me): boolean => scopes.includes('admin')
const mayRun = ({ scopes }: Me): boolean => scopes.includes('run')
const isForAllProjects = ({ projects }: Me): boolean => projects === null

export const PAGES: Partial<Record<string, PageEntry>> = {
  home: { title: 'Home', icon: 'home', load: async () => HomePage },
  new: {
    title: 'New conversation',
    isFor: mayRun,
    load: async () => (await import('../pages/conversations.js')).NewConversationPage,
  },
  conversations: {
    title: 'Conversations',
    icon: 'chat',
    load: async () => (await import('../pages/conversations.js')).ConversationsPage,
  },
  projects: {
    title: 'Projects',
    icon: 'folder',
    load: async () => (await import('../pages/projects.js')).ProjectsPage,
  },
  agents: { title: 'Agents', icon: 'agent', load: async () => (await import('../pages/agents.js')).AgentsPage },
  queue: {
    title: 'Queue',
    icon: 'queue',
    isFor: isForAllProjects,
    load: async () => (await import('../pages/queue.js')).QueuePage,
  },
  usage: { title: 'Usage', icon: 'chart', load: async () => (await import('../pages/usage.js')).UsagePage },
  credentials: {
    title: 'Credentials',
    icon: 'key',
    isFor: isOwner,
    load: async () => (await import('../pages/credentials.js')).CredentialsPage,
  },
  settings: {
    title: 'Settings',
    icon: 'settings',
    isFor: isOwner,
    load: async () => (await import('../pages/settings.js')).SettingsPage,
  },
  'first-steps': {
    title: 'First steps',
    load: async () => (await import('../pages/first-steps.js')).FirstStepsPage,
  },
}

export function mayOpen({ isFor }: PageEntry, me: Me): boolean {
  return isFor?.(me) ?? true
}

/** The pages in the navigation. */
export function listedPages(me: Me): Array<{ name: string; title: string; icon: IconName }> {
  return Object.entries(PAGES).flatMap(([name, entry]) =>
    entry?.icon !== undefined && mayOpen(entry, me) ? [{ name, title: entry.title, icon: entry.icon }] : [],
  )
}
