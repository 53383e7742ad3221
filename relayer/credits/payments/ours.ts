/** Which payments are ours: those whose metadata, written by us when the intent was made, name this deployment and an account. */
import type Stripe from "stripe";
import { parseHash32, type AccountId } from "../../../protocol/ids";

export const CURRENCY = "usd";

/** Several deployments may share one account at the processor: each credits its own intents only. */
export function metadataOf(deployment: string, accountId: AccountId): Record<string, string> {
  return { deployment, account_id: accountId };
}

export function accountOf(metadata: Stripe.Metadata | null, deployment: string): AccountId | undefined {
  if (metadata?.deployment !== deployment || metadata.account_id === undefined) return undefined;
  return parseHash32(metadata.account_id) as AccountId | undefined;
}

export function idOf(reference: string | { readonly id: string } | null | undefined): string | undefined {
  return typeof reference === "string" ? reference : (reference?.id ?? undefined);
}
