/** Spending caps as people type them. */
import { centsIn } from "../../components/text";

export const CAP_HINT = "A sum like 25, 2.50 or $1,000; empty for no cap.";

/** The contract's cents, 0 for none; undefined if it is no sum. */
export function capCents(text: string): string | undefined {
  if (text.trim() === "") return "0";
  const cents = centsIn(text);
  return cents === undefined || cents === 0 ? undefined : String(cents);
}
