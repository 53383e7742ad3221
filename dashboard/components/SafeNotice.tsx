import type { ReactNode } from "react";
import { useIsReadable } from "../session/context";
import { Notice } from "./elements";

/** Instead of records that a session which prepares changes for a multisig cannot read. */
export function SafeNotice({ what }: { readonly what: string }): ReactNode {
  if (useIsReadable()) return null;
  return <Notice>A multisig cannot sign in here: read the {what} with a key of the account.</Notice>;
}
