/**
 * `keywright safe`: the owner's writes as a file for Safe's Transaction Builder instead of transactions. Several with
 * the same file become one batch.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { JsonRpcProvider, Wallet } from "ethers";
import { createChainSecuredClient, type ChainSecuredClient } from "../chainSecured";
import { decodeCalls } from "../calls";
import { ClientError, WrongUse } from "../errors";
import type { OperationName } from "../operations";
import { safeBatchFile, type OwnerTransaction, type SafeBatchFile } from "../safe";
import type { OwnerWrite } from "../writes";
import { serviceOf } from "./config";
import { withProgress } from "./io";
import { secretFile } from "./keeping";
import { commandOf, typedOf } from "./commands";
import { refuseIdempotencyKey, type Context } from "./context";
import { commandSpecs, inputOf, type CommandSpec } from "./spec";
import { defined } from "../../protocol/defined";

interface SafeOptions {
  readonly safe: string;
  readonly rpc?: string;
  readonly account?: string;
  readonly contract?: string;
  readonly out: string;
  readonly title: string;
}

/** Operations whose write is prepared from the same fields. Minting ones return what was minted. */
const PREPARED: Readonly<Partial<Record<OperationName, keyof ChainSecuredClient["prepare"]>>> = {
  newAccount: "createAccount",
  updateWallet: "updatePkp",
};
const MINTING: readonly OperationName[] = ["createWallet", "addUsageApiKey"];
/** Operations that are not transactions of an owner. */
const NOT_WRITES: ReadonlySet<OperationName> = new Set<OperationName>([
  "createPaymentIntent",
  "confirmPayment",
  "convertToChainSecuredAccount",
  "createWalletWithSignature",
  "addUsageApiKeyWithSignature",
]);

export function addSafe(program: Command, context: Context): void {
  const safe = program
    .command("safe")
    .description(
      "write a file for a Safe's Transaction Builder instead of sending; the call is appended to an existing file",
    )
    .requiredOption("--safe <address>", "the Safe that owns the account")
    .requiredOption("--out <file>", "the batch file")
    .option("--rpc <url>", "RPC endpoint of the service's chain (KEYWRIGHT_RPC_URL)")
    .option("--account <id>", "the account's id when it is not the Safe's own")
    .option("--contract <address>", "the expected contract; a service that names another one is refused")
    .option("--title <text>", "what the signers see", "Keywright");
  for (const spec of commandSpecs().filter(({ effect, name }) => effect && !NOT_WRITES.has(name))) {
    const command = commandOf(safe, spec);
    if (spec.name === "addUsageApiKey")
      command.option("--secret-out <file>", "write the key to a new file that only you can read, not to the screen");
    command.action(async (...given: unknown[]) => {
      refuseIdempotencyKey(context.options());
      const { all: _, ...typed } = typedOf(spec, given);
      const { secretOut } = command.opts<{ secretOut?: string }>();
      await intoSecretFile(context, secretOut, (keep) =>
        writeFile(context, safe.opts<SafeOptions>(), spec, inputOf(spec, typed), keep),
      );
    });
  }
}

type Minted = Readonly<Record<string, unknown>>;
/** Keeps a secret, and returns what may be shown. */
type Keep = (minted: Minted) => Minted;

async function intoSecretFile(
  context: Context,
  named: string | undefined,
  use: (keep: Keep) => Promise<void>,
): Promise<void> {
  if (named === undefined) return use((minted) => minted);
  const file = secretFile(context, named);
  try {
    await use((minted) => {
      file.write(minted);
      const { usage_api_key: _, ...shown } = minted;
      return { ...shown, secret_in: named };
    });
  } catch (error) {
    throw file.failed(error);
  }
}

async function writeFile(
  context: Context,
  options: SafeOptions,
  spec: CommandSpec,
  input: Record<string, unknown>,
  keep: Keep,
): Promise<void> {
  const { io, print } = context;
  const rpc = options.rpc ?? io.env["KEYWRIGHT_RPC_URL"];
  if (rpc === undefined) throw new WrongUse("--rpc is needed: an RPC endpoint of the service's chain.");
  const { url, insecure } = serviceOf(io.env, context.options());
  const provider = new JsonRpcProvider(rpc, undefined, { staticNetwork: true });
  try {
    // Signs the mints' typed data; owns nothing.
    const signer = Wallet.createRandom(provider);
    const given = {
      baseUrl: url,
      insecure,
      signer,
      owner: options.safe,
      ...defined({ accountId: options.account }),
      expect: defined({ contractAddress: options.contract }),
    };
    const file = resolve(io.cwd, options.out);
    const made = await withProgress(
      io,
      "preparing",
      createChainSecuredClient(given).then(async (client) => {
        // Before anything is minted.
        const earlier = earlierIn(file, client.safeFile([], { name: options.title }), client.contractAddress);
        const { write, minted } = await prepare(client, spec.name, input, keep);
        const calls = [...earlier.calls, client.transaction(write)];
        return { write, minted, batch: safeBatchFile(client.chainId, calls, earlier.meta) };
      }),
    );
    writeFileSync(file, `${JSON.stringify(made.batch, null, 2)}\n`);
    print({ file, calls: made.batch.transactions.length, function: made.write.functionName, ...made.minted });
  } finally {
    provider.destroy();
  }
}

async function prepare(
  client: ChainSecuredClient,
  name: OperationName,
  input: Record<string, unknown>,
  keep: Keep,
): Promise<{ write: OwnerWrite; minted?: object }> {
  if (MINTING.includes(name)) return prepareMinted(client, name, input, keep);
  const method = (client.prepare as unknown as Record<string, ((input: unknown) => Promise<OwnerWrite>) | undefined>)[
    PREPARED[name] ?? name
  ];
  if (method === undefined) throw new WrongUse(`${name} is no transaction of an owner.`);
  return { write: await method(input) };
}

async function prepareMinted(
  client: ChainSecuredClient,
  name: OperationName,
  input: Record<string, unknown>,
  keep: Keep,
): Promise<{ write: OwnerWrite; minted: object }> {
  if (name === "createWallet") {
    const minted = await client.mintPkp();
    return { write: await client.prepare.registerPkp(minted, input), minted };
  }
  const { usage_api_key, minted } = await client.mintUsageKey();
  const shown = keep({ usage_api_key, ...minted });
  return { write: await client.prepare.attachUsageKey(minted, input as never), minted: shown };
}

interface Earlier {
  readonly calls: readonly OwnerTransaction[];
  readonly meta: Parameters<typeof safeBatchFile>[2];
}

/**
 * The calls that the file has: one batch for one Safe on one chain; any other content is refused rather than
 * overwritten. Others may have written the file: only calls of the account contract count, and what the signers will
 * read of them is made of their data again.
 */
function earlierIn(file: string, { meta: own, chainId }: SafeBatchFile, contract: string): Earlier {
  const { createdFromSafeAddress: safe } = own;
  const meta = { ...own, ...defined({ safe }) };
  if (!existsSync(file)) return { calls: [], meta };
  const old = batchIn(file);
  const same = Array.isArray(old.transactions) && old.chainId === chainId && old.meta?.createdFromSafeAddress === safe;
  if (!same) throw new WrongUse(`${file} is not a batch of this Safe on this chain; name another.`);
  const calls = (old.transactions as readonly unknown[]).map((one) => {
    const { to, value, data } = Object(one) as Partial<OwnerTransaction>;
    const isOwn = typeof to === "string" && to.toLowerCase() === contract.toLowerCase();
    if (!isOwn || value !== "0" || typeof data !== "string")
      throw new WrongUse(`${file} has a call that is none of ${contract}, or sends coin; name another.`);
    return { to, value, data };
  });
  requireCalls(file, calls);
  return { calls, meta: { ...meta, name: String(old.meta?.name), description: String(old.meta?.description ?? "") } };
}

function batchIn(file: string): Partial<SafeBatchFile> {
  try {
    return Object(JSON.parse(readFileSync(file, "utf8"))) as Partial<SafeBatchFile>;
  } catch {
    throw new WrongUse(`${file} is not a batch file; name another.`);
  }
}

function requireCalls(file: string, calls: readonly OwnerTransaction[]): void {
  try {
    calls.forEach(({ data }) => decodeCalls(data));
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    throw new WrongUse(`${file} has a call that the contract does not know; name another.`);
  }
}
