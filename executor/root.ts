/** The root key: where it comes from, that it is the one the contract is bound to, and its name before any contract. */
import { join } from "node:path";
import type { Logger } from "pino";
import type { Hash32 } from "../protocol/ids";
import type { Config, RootConfig } from "./config";
import { Keyring } from "./keys/keyring";
import { ephemeralRootKey, rootKeyFromFile } from "./keys/rootKey";
import { rootIdentityOf, type RootIdentity } from "./keys/rootIdentity";
import { ExecutorServer } from "./server";
import { openTee, requireGenuineQuote, type TeeSource } from "./tee";
import { defined } from "../protocol/defined";

/** The keyholder has another root key than the one the contract is bound to. No restart mends that. */
export class WrongRoot extends Error {
  override readonly name = "WrongRoot";
}

/** The guest agent. In production one whose quotes are genuine, before it is asked for a key. */
export async function openCheckedTee(config: RootConfig): Promise<TeeSource> {
  const tee = openTee({ kind: config.TEE, ...defined({ endpoint: config.DSTACK_ENDPOINT }) });
  try {
    if (config.production) await requireGenuineQuote(tee);
    return tee;
  } catch (error) {
    await tee.close();
    throw error;
  }
}

/**
 * The keys under the contract's namespace.
 * @param committed the contract's commitment
 * @throws WrongRoot before any key was derived from another root.
 */
export async function openKeyring(
  config: Config,
  tee: TeeSource,
  { keyNamespace, committed }: { readonly keyNamespace: Hash32; readonly committed: Hash32 },
  logger: Logger,
): Promise<Keyring> {
  return withRoot(config, tee, logger, (root) => {
    const { commitment } = rootIdentityOf(root);
    if (commitment !== committed) throw new WrongRoot(otherRoot(config, commitment, committed));
    return new Keyring(root, keyNamespace);
  });
}

const otherRoot = ({ contractAddress, chainId }: Config, own: Hash32, committed: Hash32): string =>
  `this keyholder's root key has the commitment ${own}, but the contract ${contractAddress} on chain ${chainId} is ` +
  `bound to the root with the commitment ${committed}: every key, identity and payer would be another one, so ` +
  "nothing is served. Give it back the root it had: docs/operations.md#the-keyholder-has-another-root";

/**
 * A keyholder without a contract (`CONTRACT_ADDRESS=none`). It answers one call, the commitment to its root, with which
 * the contract is then deployed.
 */
export function startWithoutContract(
  config: RootConfig,
  logger: Logger,
): { readonly started: Promise<void>; stop(): Promise<void> } {
  const opened = open(config, logger);
  return { started: opened.then(() => undefined), stop: async () => (await opened.catch(() => undefined))?.close(0) };
}

async function open(config: RootConfig, logger: Logger): Promise<ExecutorServer> {
  const tee = await openCheckedTee(config);
  const identity = await withRoot(config, tee, logger, rootIdentityOf).finally(() => tee.close());
  const server = await ExecutorServer.listen({
    socketPath: config.EXECUTOR_SOCKET,
    group: config.EXECUTOR_SOCKET_GROUP,
    logger,
  });
  server.serve({ rootCommitment: () => commitmentAnswer(identity) });
  logger.info({ rootCommitment: identity.commitment }, "no contract yet: deploy it with this root commitment");
  return server;
}

export const commitmentAnswer = ({
  commitment,
  publicKey,
}: RootIdentity): { commitment: Hash32; publicKey: string } => ({
  commitment,
  publicKey,
});

async function withRoot<T>(config: RootConfig, tee: TeeSource, logger: Logger, use: (root: Buffer) => T): Promise<T> {
  const root = await rootKey(config, tee, logger);
  try {
    return use(root);
  } finally {
    root.fill(0);
  }
}

function rootKey(config: RootConfig, tee: TeeSource, logger: Logger): Promise<Buffer> | Buffer {
  if (tee.kind !== "none") return tee.rootKey();
  const file = rootKeyFileOf(config);
  if (file !== undefined) return rootKeyFromFile(file);
  logger.warn(
    "no TEE, no ROOT_KEY_FILE and no DATA_DIR: the root key is lost when this process ends, and every key with it",
  );
  return ephemeralRootKey();
}

export const rootKeyFileOf = ({ ROOT_KEY_FILE, DATA_DIR }: RootConfig): string | undefined =>
  ROOT_KEY_FILE ?? (DATA_DIR === undefined ? undefined : join(DATA_DIR, "root.key"));
