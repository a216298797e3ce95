// Finds sections of the documentation.

import type { RenderedPage, Section } from './rendered-page.js'

export interface Hit {
  page: RenderedPage
  section: Section
  /** A piece of the section around the first word found. */
  excerpt: string
}

const MAX_WORDS = 8
const MAX_HITS = 30
const EXCERPT_CHARACTERS = 200
const BEFORE_CHARACTERS = 60

export function wordsOf(query: string): string[] {
  return [...new Set(query.toLowerCase().match(/[^\s"'`]+/g))].slice(0, MAX_WORDS)
}

/** Sections that have all the words, best first: what is named so comes before what mentions it. */
export function search(pages: RenderedPage[], words: string[]): Hit[] {
  if (words.length === 0) return []
  return pages
    .flatMap((page) => page.sections.map((section) => ({ page, section, score: scoreOf(page, section, words) })))
    .filter(({ score }) => score > 0)
    .toSorted((one, other) => other.score - one.score)
    .slice(0, MAX_HITS)
    .map(({ page, section }) => ({ page, section, excerpt: excerptOf(section.text, words) }))
}

/** 0 unless each word is in the title, the heading or the text, and one of them below the title. */
function scoreOf(page: RenderedPage, section: Section, words: string[]): number {
  const title = `${page.title} ${page.path}`.toLowerCase()
  const [heading, text] = [section.heading.toLowerCase(), section.text.toLowerCase()]
  let score = 0
  let isBelowTitle = false
  for (const word of words) {
    const inSection = (heading.includes(word) ? 8 : 0) + Math.min(text.split(word).length - 1, 3)
    const ofWord = inSection + (title.includes(word) ? 4 : 0)
    if (ofWord === 0) return 0
    isBelowTitle ||= inSection > 0
    score += ofWord
  }
  return isBelowTitle ? score : 0
}

function excerptOf(text: string, words: string[]): string {
  const plain = text.replaceAll(/\s+/g, ' ').trim()
  const places = words.map((word) => plain.toLowerCase().indexOf(word)).filter((place) => place >= 0)
  const wanted = Math.max(Math.min(...places, plain.length) - BEFORE_CHARACTERS, 0)
  const start = places.length === 0 || wanted === 0 ? 0 : plain.indexOf(' ', wanted) + 1
  const end = start + EXCERPT_CHARACTERS
  const cut = plain.length > end ? plain.slice(start, plain.lastIndexOf(' ', end)) : plain.slice(start)
  return `${start > 0 ? '… ' : ''}${cut}${plain.length > end ? ' …' : ''}`
}
