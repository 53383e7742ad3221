/**
 * A process that uses the ledger as a relayer does, to be killed at any moment. It reports every completed operation as
 * one line of JSON: whatever it reported must be in the ledger.
 */
import { randomBytes } from "node:crypto";
import Stripe from "stripe";
import type { AccountId } from "../../protocol/ids";
import { KeywrightError } from "../../protocol/errors";
import { Secret } from "../../protocol/secret";
import { Credits } from "../../relayer/credits/index";
import { openStore } from "../../relayer/store/index";
import { Instance } from "../../relayer/store/instance";
import { endWrite } from "./endedWrite";

export interface SpenderOptions {
  readonly databaseUrl?: string;
  readonly dataDir?: string;
  readonly stripeUrl: string;
  readonly deployment: string;
  readonly accounts: readonly AccountId[];
  /** Concurrent operations. */
  readonly parallel: number;
}

export type Told =
  | { readonly told: "started" }
  | { readonly told: "cost"; readonly id: string; readonly cents: number }
  | { readonly told: "credited"; readonly id: string };

const tell = (line: Told): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const fail = (error: unknown): never => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
};

async function main(options: SpenderOptions): Promise<void> {
  const { db } = await openStore(options);
  const instance = new Instance({ db, onError: fail });
  await instance.start();
  const { hostname, port } = new URL(options.stripeUrl);
  const stripe = new Stripe("sk_test_ours", { host: hostname, port, protocol: "http", telemetry: false });
  const credits = new Credits({
    db,
    instanceId: instance.id,
    prices: { managementWriteCents: 1, runSecondCents: 1 },
    signup: { cents: 0, dailyCapCents: undefined, everyAccount: false },
    payments: {
      secretKey: new Secret("sk_test_ours"),
      publishableKey: "pk_test_ours",
      webhookSecret: new Secret("whsec_test"),
      apiBase: options.stripeUrl,
    },
    deployment: options.deployment,
    onError: fail,
  });
  credits.start();
  tell({ told: "started" });
  await Promise.all(
    Array.from({ length: options.parallel }, () => spendForEver({ credits, stripe, db }, options.accounts)),
  );
}

interface Tools {
  readonly credits: Credits;
  readonly stripe: Stripe;
  readonly db: Awaited<ReturnType<typeof openStore>>["db"];
}

async function spendForEver(tools: Tools, accounts: readonly AccountId[]): Promise<void> {
  const acts = [topUp, run, run, run, write, write];
  for (;;) {
    const act = acts[Math.floor(Math.random() * acts.length)] ?? run;
    const account = accounts[Math.floor(Math.random() * accounts.length)] as AccountId;
    await act(tools, account).catch((error: unknown) => {
      if (!(error instanceof KeywrightError) || error.code !== "insufficient_credit") throw error;
    });
  }
}

async function topUp({ credits, stripe }: Tools, accountId: AccountId): Promise<void> {
  const { paymentIntentId: id } = await credits.payments.intents.create({ accountId, amountCents: 500 });
  await stripe.paymentIntents.confirm(id, { payment_method: "pm_card_visa" });
  await credits.payments.intents.confirm(accountId, id);
  tell({ told: "credited", id });
}

async function run({ credits }: Tools, accountId: AccountId): Promise<void> {
  const { reservationId: id, limitMs } = await credits.reservations.reserveRun({ accountId, limitMs: 30_000 });
  tell({ told: "cost", id, cents: await credits.reservations.settleRun(id, Math.random() * limitMs) });
}

async function write({ credits, db }: Tools, accountId: AccountId): Promise<void> {
  const id = randomBytes(16).toString("hex");
  await credits.reservations.reserveWrite({ accountId, submissionId: id, cents: 7 });
  await db.transaction().execute((trx) => credits.reservations.bindWrites([id], trx));
  const cents = await endWrite({ db, credits }, id, true);
  tell({ told: "cost", id, cents });
}

main(JSON.parse(process.argv[2] ?? "{}") as SpenderOptions).catch(fail);
