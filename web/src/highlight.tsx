import bash from 'highlight.js/lib/languages/bash'
import diff from 'highlight.js/lib/languages/diff'
import go from 'highlight.js/lib/languages/go'
import ini from 'highlight.js/lib/languages/ini'
import java from 'highlight.js/lib/languages/java'
import json from 'highlight.js/lib/languages/json'
import markdown from 'highlight.js/lib/languages/markdown'
import python from 'highlight.js/lib/languages/python'
import rust from 'highlight.js/lib/languages/rust'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import { createLowlight } from 'lowlight'
import type { ComponentChildren } from 'preact'

const lowlight = createLowlight({
  bash,
  diff,
  go,
  ini,
  java,
  json,
  markdown,
  python,
  rust,
  sql,
  typescript,
  xml,
  yaml,
})

// Its grammar covers both, and a second one would double the size.
lowlight.registerAlias({ typescript: ['javascript', 'js', 'jsx', 'mjs', 'cjs'] })

/** Longer texts are shown without colours, since highlighting them would block the page. */
const LONGEST = 20_000

type Highlighted = ReturnType<typeof lowlight.highlight>['children'][number]

/** The code as highlighted nodes, or unchanged if the language is unknown. */
export function highlight(text: string, language: string): ComponentChildren {
  const name = language.toLowerCase()
  if (text.length > LONGEST || !lowlight.registered(name)) return text
  return lowlight.highlight(name, text).children.map(pieceOf)
}

function pieceOf(node: Highlighted): ComponentChildren {
  if (node.type === 'text') return node.value
  if (node.type !== 'element') return null
  const { className } = node.properties
  return <span class={Array.isArray(className) ? className.join(' ') : ''}>{node.children.map(pieceOf)}</span>
}
