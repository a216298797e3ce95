import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { directoriesReport } from '../../../src/cli/doctor/directories-report.js'
import type { ProjectRecord } from '../../../src/store/projects.js'
import { temporaryDirectory } from '../../kit/temporary-directory.js'

const MADE = { instance: 'x', createdAt: 1, updatedAt: 1 }

it('says which directories are missing, of the file and of the database, and how to make them', async () => {
  const directory = temporaryDirectory()
  const file = join(directory, 'file')
  writeFileSync(file, '')
  const config = {
    workingDir: join(directory, 'nope'),
    projects: [
      { id: 'here', directory },
      { id: 'file', directory: file },
      { id: 'pod', directory: '/workspace', pod: { name: 'pod-0' } },
    ],
  }
  const listed: ProjectRecord[] = [
    { ...MADE, id: 'here', directory: '/was/here', source: 'file' },
    { ...MADE, id: 'made', directory: "/nope/it's here", source: 'api' },
  ]
  expect(await directoriesReport(config, async () => listed)).toEqual({
    text: [
      `✗ Directories: workingDir: the directory ${directory}/nope does not exist`,
      `    Run: mkdir -p ${directory}/nope`,
      `✗ Directories: project file: ${file} is not a directory`,
      '    Choose a directory.',
      "✗ Directories: project made: the directory /nope/it's here does not exist",
      String.raw`    Run: mkdir -p '/nope/it'\''s here'`,
    ].join('\n'),
    isHealthy: false,
  })
})

it.each([
  [[], 'the working directory exists'],
  [['shop', 'site'], 'all 3 exist'],
])('says that all are there, with the projects %j', async (ids, text) => {
  const directory = temporaryDirectory()
  const config = { workingDir: directory, projects: ids.map((id) => ({ id, directory })) }
  const unreadable = async (): Promise<ProjectRecord[]> => {
    throw new Error('no database')
  }
  expect(await directoriesReport(config, unreadable)).toEqual({ text: `✓ Directories: ${text}`, isHealthy: true })
})
