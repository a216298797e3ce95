/** How a notice begins by which a run says that it waits for an approval. */
export const ASKED = 'Waits for an answer '

/** Whether a notice says what the question itself says, too. */
export function isAskedNotice(notice: string): boolean {
  return notice.startsWith(ASKED) && /^\([0-9a-f]{8}\): /.test(notice.slice(ASKED.length))
}
