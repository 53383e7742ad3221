/**
 * `npm run operator -- <command>`: manual operator tasks. Commands that change the contract print the transaction for a
 * multisig to send, or, with `--sign`, prompt for the contract admin's key and send it; the key is not stored.
 * Runbooks: docs/operations.md.
 */
import { shortOf } from "./prompt";
import { UsageError, type Command } from "./operator/command";
import { allowDevice, allowImage, revokeDevice, revokeImage, showAllowlist } from "./operator/allowlist";
import { correctBalance } from "./operator/books";
import { checkCompose } from "./operator/compose";
import { addPayer, cancelAdminPayer, listPayers, registerPayers, removePayer, setAdminPayer } from "./operator/payers";
import { cancelSubmission, resizePool, rewindChain, showSubmission, stuckSubmissions } from "./operator/submissions";

const COMMANDS: Readonly<Record<string, Command>> = {
  payers: listPayers,
  "register-payers": registerPayers,
  "add-payer": addPayer,
  "remove-payer": removePayer,
  "set-admin-payer": setAdminPayer,
  "cancel-admin-payer": cancelAdminPayer,
  allowlist: showAllowlist,
  "allow-image": allowImage,
  "revoke-image": revokeImage,
  "allow-device": allowDevice,
  "revoke-device": revokeDevice,
  resize: resizePool,
  stuck: stuckSubmissions,
  submission: showSubmission,
  cancel: cancelSubmission,
  rewind: rewindChain,
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
    "Settings from the environment, as the relayer's: RPC_URLS, CONTRACT_ADDRESS (for the allow-list " +
      "ALLOWLIST_ADDRESS) or DEPLOYMENT_FILE, EXECUTOR_SOCKET, DATABASE_URL.",
  ].join("\n");
}

async function main(): Promise<void> {
  const given = process.argv.slice(2);
  // Not an option parser, since an amount may be negative.
  const unknown = given.find((arg) => arg.startsWith("--") && arg !== "--sign");
  if (unknown !== undefined) throw new UsageError(`There is no option ${unknown}.\n\n${usage()}`);
  const [name = "", ...args] = given.filter((arg) => arg !== "--sign");
  const command = COMMANDS[name];
  if (command === undefined) throw new UsageError(usage());
  if (args.length > (command.args.match(/[<[]/g) ?? []).length)
    throw new UsageError(`There are too many arguments.\n\n${usage()}`);
  await command.run({ args, sign: given.includes("--sign"), print: (line) => process.stdout.write(`${line}\n`) });
}

main().catch((error: unknown) => {
  process.stderr.write(`${shortOf(error)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
