const KILOBYTE = 1024
const MEGABYTE = 1024 * KILOBYTE

/** Rounded up, so that a size over a limit never reads like the limit. */
export function describeBytes(bytes: number): string {
  if (bytes < KILOBYTE) return `${bytes} ${bytes === 1 ? 'byte' : 'bytes'}`
  const [unit, name] = bytes < MEGABYTE ? [KILOBYTE, 'KB'] : [MEGABYTE, 'MB']
  return `${Math.ceil((bytes * 10) / unit) / 10} ${name}`
}
