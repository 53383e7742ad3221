import type { ReactNode } from "react";
import type { Account } from "../../session/types";

export function Freeze(_: { readonly account: Account }): ReactNode {
  return null;
}
