/** Billing routes: credit and payments. */
import type { billingRoutes as routes } from "../../protocol/http/billing";
import type { Credits } from "../credits";
import type { HistoryEntry } from "../credits/types";
import type { HandlersOf } from "../middleware/call";
import { storePageOf } from "./pages";
import { defined } from "../../protocol/defined";

export function billingRoutes({ credits }: { readonly credits: Credits }): HandlersOf<keyof typeof routes> {
  return {
    stripeConfig: async () => ({ publishable_key: credits.payments.publishableKey }),

    balance: async ({ caller }) => {
      const { balanceCents, reservedCents } = await credits.accounts.balance(caller.accountId);
      return { balance_cents: balanceCents, balance_display: dollars(balanceCents), reserved_cents: reservedCents };
    },

    createPaymentIntent: async ({ caller, body, attemptKey }) => {
      const intent = await credits.payments.intents.create({
        accountId: caller.accountId,
        amountCents: body.amount_cents,
        // Idempotency keys are of the account key or of the usage key that sends them.
        attemptKey:
          attemptKey === undefined || caller.keyId === undefined ? attemptKey : `${caller.keyId} ${attemptKey}`,
      });
      return { client_secret: intent.clientSecret, payment_intent_id: intent.paymentIntentId };
    },

    confirmPayment: async ({ caller, body }) => {
      const { balanceCents, alreadyCredited } = await credits.payments.intents.confirm(
        caller.accountId,
        body.payment_intent_id,
      );
      return { success: true, balance_cents: balanceCents, ...(alreadyCredited ? { already_credited: true } : {}) };
    },

    webhook: async ({ rawBody, header }) => {
      await credits.payments.handleWebhook(rawBody, header("Stripe-Signature"));
      return { received: true };
    },

    history: async ({ caller, query, setTotal }) => {
      const { entries, total } = await credits.accounts.history(caller.accountId, storePageOf(query), query.before);
      setTotal(total);
      return entries.map(outEntry);
    },
  };
}

function outEntry(entry: HistoryEntry): Awaited<ReturnType<HandlersOf<"history">["history"]>>[number] {
  return {
    id: String(entry.id),
    kind: entry.kind,
    amount_cents: entry.amountCents,
    reference: entry.reference,
    ...defined({ api_key_hash: entry.keyId, receipt_url: entry.receiptUrl }),
    created_at: entry.createdAt.toISOString(),
  };
}

/** Cents for display: `$20.00`, `-$0.05`. */
function dollars(cents: number): string {
  const absolute = Math.abs(cents);
  return `${cents < 0 ? "-" : ""}$${Math.floor(absolute / 100)}.${String(absolute % 100).padStart(2, "0")}`;
}
