import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** If one of these started last, the other workers would idle. */
const LONGEST = [
  'contract/backend-contract.test.ts',
  'backends/opencode/server/opencode-server-backend.test.ts',
  'backends/engine/warm/contract.test.ts',
  'store/store-contract.test.ts',
  'kubernetes/contract.test.ts',
  'crash/live-kills.test.ts',
  'crash/random-kills.test.ts',
  'channels/discord/soak.test.ts',
  'channels/discord/once.test.ts',
  'channels/discord/connection.test.ts',
  'schedule/month.test.ts',
  'channels/whatsapp/sending.test.ts',
]

/** The slowest files start first; the others in the usual order. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean => LONGEST.some((name) => moduleId.endsWith(`/${name}`))
    // oxlint-disable-next-line unicorn/no-array-sort -- this is not the method of an array
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}
