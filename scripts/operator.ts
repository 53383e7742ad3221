/**
 * `npm run operator -- <command>`: what an operator does by hand. Commands that change the contract print the transaction for a multisig to send, or, with
 * `--sign`, ask for the contract admin's key at the prompt and send it; the key is kept nowhere. Runbooks: docs/operations.md.
 */
import { parseArgs } from "node:util";
import { UsageError, type Command } from "./operator/command";
import { correctBalance } from "./operator/books";
import { checkCompose } from "./operator/compose";
import { addPayer, cancelAdminPayer, listPayers, registerPayers, removePayer, setAdminPayer } from "./operator/payers";
import { cancelSubmission, resizePool, showSubmission, stuckSubmissions } from "./operator/submissions";

const COMMANDS: Readonly<Record<string, Command>> = {
  payers: listPayers,
  "register-payers": registerPayers,
  "add-payer": addPayer,
  "remove-payer": removePayer,
  "set-admin-payer": setAdminPayer,
  "cancel-admin-payer": cancelAdminPayer,
  resize: resizePool,
  stuck: stuckSubmissions,
  submission: showSubmission,
  cancel: cancelSubmission,
  correct: correctBalance,
  "check-compose": checkCompose,
};

function usage(): string {
  const lines = Object.entries(COMMANDS).map(([name, { args, help }]) => `  ${`${name} ${args}`.padEnd(34)} ${help}`);
  return [
    "usage: npm run operator -- <command> [--sign]",
    "",
    ...lines,
    "",
    "Settings from the environment, as the relayer's: RPC_URLS, CONTRACT_ADDRESS or DEPLOYMENT_FILE, EXECUTOR_SOCKET, DATABASE_URL.",
  ].join("\n");
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { sign: { type: "boolean", default: false } } });
  const [name = "", ...args] = positionals;
  const command = COMMANDS[name];
  if (command === undefined) throw new UsageError(usage());
  await command.run({ args, sign: values.sign, print: (line) => process.stdout.write(`${line}\n`) });
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
