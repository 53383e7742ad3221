/** The commitment to a keyholder's root key, which the contract is deployed with. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callExecutor } from "./dev/payers";
import { startProcess, waitUntil } from "./dev/processes";

/** Asks a keyholder that listens on this socket, with a contract or (`CONTRACT_ADDRESS=none`) without one. */
export const rootCommitmentAt = async (executorSocket: string): Promise<string> =>
  (await callExecutor(executorSocket, "rootCommitment", {})).commitment;

/** Starts a keyholder without a contract in this environment, asks it and stops it. */
export async function askRootCommitment(
  main: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "keywright-root-"));
  const socket = join(folder, "executor.sock");
  const keyholder = startProcess({
    name: "executor",
    command: process.execPath,
    args: [main],
    env: { ...env, EXECUTOR_SOCKET: socket, CONTRACT_ADDRESS: "none" },
    onLine: () => undefined,
  });
  try {
    const { died } = keyholder;
    let commitment = "";
    const answers = async (): Promise<boolean> => (commitment = await rootCommitmentAt(socket)) !== "";
    await waitUntil("the executor without a contract", answers, { timeoutMs: 60_000, died });
    return commitment;
  } finally {
    await keyholder.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
