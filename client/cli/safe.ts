/**
 * `keywright safe`: the owner's writes as a file for Safe's Transaction Builder instead of transactions. Several with
 * the same file become one batch.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { JsonRpcProvider, Wallet } from "ethers";
import { createChainSecuredClient, type ChainSecuredClient } from "../chainSecured";
import type { OperationName } from "../operations";
import type { SafeBatchFile } from "../safe";
import type { OwnerWrite } from "../writes";
import { serviceOf } from "./config";
import { WrongUse } from "../errors";
import { withProgress } from "./io";
import { commandOf, typedOf } from "./commands";
import type { Context } from "./context";
import { commandSpecs, inputOf, type CommandSpec } from "./spec";
import { defined } from "../../protocol/defined";

interface SafeOptions {
  readonly safe: string;
  readonly rpc?: string;
  readonly account?: string;
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
    .option("--title <text>", "what the signers see", "Keywright");
  for (const spec of commandSpecs().filter(({ effect, name }) => effect && !NOT_WRITES.has(name))) {
    commandOf(safe, spec).action(async (...given: unknown[]) => {
      const { all: _, ...typed } = typedOf(spec, given);
      await writeFile(context, safe.opts<SafeOptions>(), spec, inputOf(spec, typed));
    });
  }
}

async function writeFile(
  context: Context,
  options: SafeOptions,
  spec: CommandSpec,
  input: Record<string, unknown>,
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
    };
    const made = await withProgress(
      io,
      "preparing",
      createChainSecuredClient(given).then(async (client) => ({
        client,
        ...(await prepare(client, spec.name, input)),
      })),
    );
    const file = resolve(io.cwd, options.out);
    const batch = joined(file, made.client.safeFile([made.write], { name: options.title }));
    writeFileSync(file, `${JSON.stringify(batch, null, 2)}\n`);
    print({ file, calls: batch.transactions.length, function: made.write.functionName, ...made.minted });
  } finally {
    provider.destroy();
  }
}

async function prepare(
  client: ChainSecuredClient,
  name: OperationName,
  input: Record<string, unknown>,
): Promise<{ write: OwnerWrite; minted?: object }> {
  if (MINTING.includes(name)) return prepareMinted(client, name, input);
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
): Promise<{ write: OwnerWrite; minted: object }> {
  if (name === "createWallet") {
    const minted = await client.mintPkp();
    return { write: await client.prepare.registerPkp(minted, input), minted };
  }
  const { usage_api_key, minted } = await client.mintUsageKey();
  return { write: await client.prepare.attachUsageKey(minted, input as never), minted: { usage_api_key, ...minted } };
}

/** One batch for one Safe on one chain; any other file content is refused rather than overwritten. */
function joined(file: string, fresh: SafeBatchFile): SafeBatchFile {
  if (!existsSync(file)) return fresh;
  let old: SafeBatchFile;
  try {
    old = JSON.parse(readFileSync(file, "utf8")) as SafeBatchFile;
  } catch {
    throw new WrongUse(`${file} is not a batch file; name another.`);
  }
  const same =
    Array.isArray(old.transactions) &&
    old.chainId === fresh.chainId &&
    old.meta.createdFromSafeAddress === fresh.meta.createdFromSafeAddress;
  if (!same) throw new WrongUse(`${file} is not a batch of this Safe on this chain; name another.`);
  return { ...old, transactions: [...old.transactions, ...fresh.transactions] };
}
