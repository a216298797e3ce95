/** The start of the notice with which a run says that it is waiting for an approval. */
export const ASKED = 'Waits for an answer '

/** Whether a notice only repeats what the approval request shows. */
export function isAskedNotice(notice: string): boolean {
  return notice.startsWith(ASKED) && /^\([0-9a-f]{8}\): /.test(notice.slice(ASKED.length))
}
