/**
 * The editor's content, kept in memory while the tab is open, so that switching screens loses nothing. Never stored.
 */
import { EXAMPLES } from "./examples";

export interface Draft {
  readonly code: string;
  readonly params: string;
}

const drafts = new Map<string, Draft>();

export function draftOf(account: string): Draft {
  const [hello] = EXAMPLES;
  return drafts.get(account) ?? { code: hello?.code ?? "", params: JSON.stringify(hello?.params ?? {}, null, 2) };
}

export const keepDraft = (account: string, draft: Draft): void => void drafts.set(account, draft);
