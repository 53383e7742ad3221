/**
 * Submissions in the store. Needs the PostgreSQL that the relayers use; the embedded database is exclusive to its
 * relayer.
 */
import { TRANSACTION_IS_OPEN, WRITE_IS_OPEN } from "../../relayer/chain/submissions/states";
import { sql } from "kysely";
import { rewind } from "../../relayer/chain/events/reorg";
import { parseSubmissionId } from "../../relayer/chain";
import { wantPayers } from "../../relayer/chain/payers/wanted";
import { cancelSubmission as cancel } from "../../relayer/chain/submissions/transactions";
import type { Db } from "../../relayer/store/database";
import { openStore, type Store } from "../../relayer/store/index";
import { countArgument, setting, table, usageError, type Command, type Invocation } from "./command";

const STUCK_AFTER_SECONDS = 60;

export async function withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore({ databaseUrl: setting("DATABASE_URL"), maxConnections: 2, schema: "asItIs" });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

function idArgument({ args }: Invocation): string {
  return parseSubmissionId(args[0] ?? "") ?? usageError("This command takes a submission id (32 hex digits).");
}

interface Stuck {
  readonly id: string;
  readonly kind: string;
  readonly state: string;
  readonly payer: number;
  readonly nonce: number | null;
  readonly since: Date;
  readonly abandon: boolean;
}

export const stuckSubmissions: Command = {
  args: "",
  help: `submissions without an outcome for more than ${STUCK_AFTER_SECONDS} s`,
  run: async ({ print }) =>
    withStore(async ({ db }) => {
      const before = new Date(Date.now() - STUCK_AFTER_SECONDS * 1_000);
      const { rows } = await sql<Stuck>`
        select coalesce(writes.id, transactions.id) as id, coalesce(kind, purpose) as kind, transactions.state, payer,
          nonce, coalesce(writes.created_at, transactions.created_at) as since, abandon
        from transactions left join writes on transaction_id = transactions.id and ${WRITE_IS_OPEN}
        where (writes.id is not null or ${TRANSACTION_IS_OPEN})
          and coalesce(writes.created_at, transactions.created_at) < ${before}
        order by payer, nonce, place`.execute(db);
      if (rows.length === 0) return print("None.");
      const lines = rows.map((row) => [
        row.id,
        row.kind,
        row.state,
        String(row.payer),
        String(row.nonce),
        row.since.toISOString(),
        row.abandon ? "cancelled" : "",
      ]);
      print(table([["id", "kind", "state", "payer", "nonce", "since", ""], ...lines]));
    }),
};

export const showSubmission: Command = {
  args: "<id>",
  help: "one submission with its transactions",
  run: async (invocation) =>
    withStore(async ({ db }) => {
      const id = idArgument(invocation);
      const write = await db.selectFrom("writes").selectAll().where("id", "=", id).executeTakeFirst();
      const carrier = write?.transaction_id ?? id;
      const transaction = await db.selectFrom("transactions").selectAll().where("id", "=", carrier).executeTakeFirst();
      if (transaction === undefined) throw new Error("No such submission.");
      const { calldata: _calldata, tag: _tag, ...shown } = { calldata: null, tag: null, ...(write ?? transaction) };
      const attempts = await db
        .selectFrom("attempts")
        .select(["hash", "is_noop", "max_fee", "priority_fee", "created_at"])
        .where("transaction_id", "=", carrier)
        .orderBy("created_at")
        .execute();
      invocation.print(
        JSON.stringify({ ...shown, ...(write === undefined ? {} : { transaction }), attempts }, undefined, 2),
      );
    }),
};

export const cancelSubmission: Command = {
  args: "<id>",
  help: "give up a submission: an empty transaction uses its nonce",
  run: async (invocation) =>
    withStore(async ({ db }) => {
      if (!(await cancel(db, idArgument(invocation))))
        throw new Error("It has an outcome already, waits for another transaction, or does not exist.");
      invocation.print("Requested. Either the write or the empty transaction is mined; `submission <id>` shows which.");
    }),
};

export const rewindChain: Command = {
  args: "<block> <hash>",
  help: "after the chain dropped final blocks: take back all above a block that it still has",
  run: async ({ args: [number = "", hash = ""], print }) =>
    withStore(async ({ db }) => {
      if (!/^[0-9]{1,15}$/.test(number) || !/^0x[0-9a-f]{64}$/.test(hash))
        usageError("This command takes a block's number and hash (0x and 64 lower-case hex digits).");
      if (!(await isKnown(db, number, hash)))
        throw new Error("The relayers have seen no block with this number and hash: nothing was taken back.");
      await rewind(db, { number: Number(number), hash });
      print("Done. The relayers follow the chain from there, and bring the writes above to an outcome again.");
    }),
};

/** Of a hash that no block had, no block would be common with the chain: everything would be taken back. */
async function isKnown(db: Db, number: string, hash: string): Promise<boolean> {
  const { rows } = await sql<{ known: boolean }>`
    select exists (select from followed_blocks where number = ${number}::int8 and hash = ${hash})
      or exists (select from chain_events where block_number = ${number}::int8 and block_hash = ${hash}) as known
  `.execute(db);
  return rows[0]?.known === true;
}

export const resizePool: Command = {
  args: "<count>",
  help: "use this many payers from now on (also set PAYER_COUNT, which applies at each start)",
  run: async (invocation) =>
    withStore(async ({ db }) => {
      const count = countArgument(invocation);
      await wantPayers(db, count);
      invocation.print(
        `The pool has ${count} payers. New ones are used once they are registered (register-payers) and have gas; ` +
          "surplus ones are drained.",
      );
    }),
};
