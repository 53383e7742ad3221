/** Corrects the ledger by further entries. Needs the PostgreSQL that the relayers use. */
import { parseHash32, type AccountId } from "../../protocol/ids";
import { ensureAccount } from "../../relayer/credits/accounts";
import { post } from "../../relayer/credits/ledger";
import { usageError, type Command, type Invocation } from "./command";
import { withStore } from "./submissions";

const MAX_CENTS = 100_000_000;

function correctionOf({ args: [account = "", cents = "", reference = ""] }: Invocation): {
  accountId: AccountId;
  amountCents: number;
  reference: string;
} {
  const accountId =
    (parseHash32(account) as AccountId | undefined) ??
    usageError("The first argument is an account id (0x and 64 hex digits).");
  const amountCents = /^-?[0-9]{1,9}$/.test(cents) ? Number(cents) : 0;
  if (amountCents === 0 || Math.abs(amountCents) > MAX_CENTS) {
    usageError("The second argument is a whole number of cents, not 0: positive gives credit, negative takes it.");
  }
  if (!/^[\x21-\x7e]{1,64}$/.test(reference))
    usageError("The third argument is a reference of your own, such as a ticket: 1 to 64 characters without blanks.");
  return { accountId, amountCents, reference };
}

export const correctBalance: Command = {
  args: "<account> <cents> <reference>",
  help: "post a correction to an account's credit; the same reference posts once",
  run: async (invocation) => {
    const correction = correctionOf(invocation);
    await withStore(async ({ db }) => {
      await ensureAccount(db, correction.accountId);
      const posted = await db
        .transaction()
        .execute((trx) =>
          post(trx, { ...correction, kind: "correction", postingKey: `correction:${correction.reference}` }),
        );
      invocation.print(
        posted
          ? `Posted ${correction.amountCents} cents.`
          : `Nothing was posted: ${correction.reference} has been used before.`,
      );
    });
  },
};
