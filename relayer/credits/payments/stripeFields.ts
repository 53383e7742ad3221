/**
 * Reads and writes members of Stripe's objects. The metadata, set when an intent is created, names deployment and
 * account, so that payments of other deployments are recognised and ignored.
 */
import type Stripe from "stripe";
import { parseHash32, type AccountId } from "../../../protocol/ids";

export const CURRENCY = "usd";
const RECEIPT_CHARACTERS = 2_000;

/** Several deployments may share one processor account: each credits only its own intents. */
export function metadataOf(deployment: string, accountId: AccountId): Record<string, string> {
  return { deployment, account_id: accountId };
}

export function accountOf(metadata: Stripe.Metadata | null, deployment: string): AccountId | undefined {
  if (metadata?.deployment !== deployment || metadata.account_id === undefined) return undefined;
  return parseHash32(metadata.account_id) as AccountId | undefined;
}

const PROCESSOR = /^(?:[a-z0-9-]+\.)*stripe\.com$/;

/** The receipt's URL if the charge has one: only https pages of the processor, since owners are sent there. */
export function receiptOf(charge: string | Pick<Stripe.Charge, "receipt_url"> | null | undefined): string | undefined {
  const text = typeof charge === "string" ? undefined : charge?.receipt_url;
  if (typeof text !== "string" || text.length > RECEIPT_CHARACTERS || !URL.canParse(text)) return undefined;
  const { protocol, hostname, port, username, password, href } = new URL(text);
  const isPlain = protocol === "https:" && port === "" && username === "" && password === "";
  return isPlain && PROCESSOR.test(hostname) ? href : undefined;
}

/**
 * Whether a dispute has taken the payment: an inquiry ("warning_…") does once it becomes a dispute, one that was
 * prevented only if the processor moved money for it.
 */
export function hasTakenMoney({ status, balance_transactions: moved }: Stripe.Dispute): boolean {
  if (status === "prevented") return moved.length === 1;
  return !status.startsWith("warning_") && status !== "won";
}

export function idOf(reference: string | { readonly id: string } | null | undefined): string | undefined {
  return typeof reference === "string" ? reference : (reference?.id ?? undefined);
}
