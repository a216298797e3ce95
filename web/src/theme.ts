export const THEMES = ['system', 'dark', 'light'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'aetheel.theme'

export function currentTheme(): Theme {
  const kept = localStorage.getItem(KEY)
  return THEMES.find((theme) => theme === kept) ?? 'system'
}

export function applyTheme(theme: Theme = currentTheme()): void {
  localStorage.setItem(KEY, theme)
  document.documentElement.dataset['theme'] = theme
}
