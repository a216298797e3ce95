/** Drawn for this dashboard, on a grid of 24. */
const PATHS = {
  agent: 'M9 3v3m6-3v3M6 8h12v11H6zM3 12h3m12 0h3M10 12v2m4-2v2',
  archive: 'M4 8v11h16V8M3 4h18v4H3zM10 12h4',
  attach: 'm20 11-8.5 8.5a4.9 4.9 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.7L9.3 17a1.6 1.6 0 0 1-2.3-2.3L14.6 7',
  auto: 'M4 5h16v11H4zM9 20h6m-3-4v4',
  book: 'M4 5c3-1 6-1 8 1 2-2 5-2 8-1v14c-3-1-6-1-8 1-2-2-5-2-8-1zM12 6v14',
  chart: 'M4 20h16M7 16v-5m5 5V6m5 10v-7',
  chat: 'M4 5h16v11H12l-5 4v-4H4z',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  chevron: 'm9 6 6 6-6 6',
  close: 'M6 6l12 12M18 6 6 18',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  edit: 'm4 20 1-4L16 5l3 3L8 19zM14 7l3 3',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  folder: 'M3 6h6l2 2h10v11H3z',
  home: 'm4 11 8-7 8 7v9h-5v-6H9v6H4z',
  key: 'M14.5 9.5a3.5 3.5 0 1 0-2.6 3.4L14 15h2v2h2v2h3v-3.5l-6.6-6.6M9.6 8.5v.01',
  logout: 'M14 4H5v16h9M10 12h11m-4-4 4 4-4 4',
  menu: 'M4 7h16M4 12h16M4 17h16',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  more: 'M5 12h.01M12 12h.01M19 12h.01M5 11.7v.6M12 11.7v.6M19 11.7v.6',
  pin: 'M9 4h6l-1 6 3 3v1H7v-1l3-3zM12 14v6',
  plus: 'M12 5v14M5 12h14',
  queue: 'M4 6h16M4 12h16M4 18h10',
  retry: 'M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4',
  search: 'M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zm4.5 10.5L20 20',
  send: 'M12 19V6m-6 5.5L12 5.5l6 6',
  settings: 'M4 8h9m4 0h3M4 16h3m4 0h9M15 6v4M9 14v4',
  shield: 'M12 3 5 6v5c0 4.5 3 8 7 10 4-2 7-5.5 7-10V6zM9 12l2 2 4-4',
  stop: 'M7 7h10v10H7z',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2m0 16v2M2 12h2m16 0h2M5 5l1.4 1.4m11.2 11.2L19 19M5 19l1.4-1.4M17.6 6.4 19 5',
  terminal: 'm5 7 5 5-5 5M12 17h7',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5m4-5v5',
  web: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18',
} as const

export type IconName = keyof typeof PATHS

/** Contract: only a picture. The text next to it, or the label of its button, says the same. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.75"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  )
}
