/**
 * `npm run deploy -- --network <name> --rpc <url> --admin <address> …`: deploys the allow-list of images, the ERC-2771
 * forwarder, AccountManager and Budgets; writes deployments/<name>.json, or the file given. The contract is bound to
 * the keyholder's root key: a keyholder that has no contract yet (`CONTRACT_ADDRESS=none`) names the commitment to it.
 * The deployer's key is entered at the prompt and kept in memory only. Payers are registered afterwards (`npm run
 * operator`), since their keys depend on the contract's address.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { JsonRpcProvider, type Wallet } from "ethers";
import { parseAddress, parseHash32, type Address } from "../protocol/ids";
import { DEFAULT_SERVICE_NAME, SERVICE_NAME_PATTERN } from "../protocol/serviceName";
import { deployAccountManager, deployAllowlist, writeDeployment } from "./deployment";
import { askWallet, shortOf } from "./prompt";
import { rootCommitmentAt } from "./rootCommitment";

const USAGE = `usage: npm run deploy -- --network <name> --rpc <url> --admin <address> [options]
  --root-commitment <hash>    as the keyholder's log has it; default: asked of the keyholder at EXECUTOR_SOCKET
  --payer-delay <seconds>     how long an added payer waits once a managed account exists; 7 days by default
  --allowlist <address>       an allow-list that is deployed already
  --allowlist-only            deploy the allow-list alone: its address is the application's id, needed before the
                              machine that has the root key can boot
  --compose-hash <hash>       an image that the new allow-list allows at once; may be repeated
  --allowlist-delay <seconds> how long a further image waits; 7 days by default
  --service-name <name>       the name in the forwarder's domain
  --out <file>                where to write the deployment`;
const DEFAULT_DELAY_SECONDS = 7 * 86_400;
const ROOT = join(__dirname, "..", "..");

interface Wanted {
  readonly network: string;
  readonly rpc: string;
  readonly admin: Address;
  readonly payerDelaySeconds: number;
  readonly allowlistDelaySeconds: number;
  readonly composeHashes: readonly string[];
  readonly allowlist: Address | undefined;
  readonly allowlistOnly: boolean;
  readonly rootCommitment: string | undefined;
  readonly serviceName: string;
  readonly file: string;
}

function readArguments(): Wanted {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      ...{ network: text, rpc: text, admin: text, "payer-delay": text, "service-name": text, out: text },
      ...{ "root-commitment": text, allowlist: text, "allowlist-delay": text },
      "allowlist-only": { type: "boolean" },
      "compose-hash": { type: "string", multiple: true },
    },
  });
  const { network, rpc, admin } = values;
  if (!network || !/^[a-z0-9-]+$/.test(network) || !rpc || !admin) throw new Error(USAGE);
  const serviceName = values["service-name"] ?? DEFAULT_SERVICE_NAME;
  if (!SERVICE_NAME_PATTERN.test(serviceName)) fail("--service-name is a letter and up to 31 letters and digits");
  requireNewList(values);
  return {
    network,
    rpc,
    admin: addressOf("--admin", admin),
    payerDelaySeconds: secondsOf("--payer-delay", values["payer-delay"]),
    allowlistDelaySeconds: secondsOf("--allowlist-delay", values["allowlist-delay"]),
    composeHashes: (values["compose-hash"] ?? []).map((hash) => hashOf("--compose-hash", hash)),
    allowlist: values.allowlist === undefined ? undefined : addressOf("--allowlist", values.allowlist),
    allowlistOnly: values["allowlist-only"] === true,
    rootCommitment:
      values["root-commitment"] === undefined ? undefined : hashOf("--root-commitment", values["root-commitment"]),
    serviceName,
    file: values.out ?? join(ROOT, "deployments", `${network}.json`),
  };
}

/** Nothing given for a new allow-list may go unused, nor the list stay empty that is all that is deployed. */
function requireNewList(values: {
  readonly allowlist?: string;
  readonly "allowlist-only"?: boolean;
  readonly "allowlist-delay"?: string;
  readonly "compose-hash"?: readonly string[];
}): void {
  const { allowlist, "compose-hash": hashes = [], "allowlist-delay": delay } = values;
  if (allowlist !== undefined && (hashes.length > 0 || delay !== undefined))
    fail("--compose-hash and --allowlist-delay are of a new allow-list: --allowlist names one that is deployed");
  if (values["allowlist-only"] && hashes.length === 0)
    fail("--allowlist-only takes --compose-hash: a list without any lets no image boot until its delay is over");
}

const addressOf = (option: string, text: string): Address =>
  parseAddress(text) ?? fail(`${option} ${text} is not an address`);

/** With or without 0x, as dstack gives compose hashes. */
const hashOf = (option: string, text: string): string =>
  parseHash32(text.startsWith("0x") ? text : `0x${text}`) ?? fail(`${option} ${text} is not 64 hex digits`);

function secondsOf(option: string, text: string | undefined): number {
  if (text === undefined) return DEFAULT_DELAY_SECONDS;
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : fail(`${option} is a whole number of seconds`);
}

/** Asks before anything is deployed: a contract that is bound to no root, or another one, is of no use. */
async function commitmentOf({ rootCommitment }: Wanted): Promise<string> {
  const { EXECUTOR_SOCKET: socket } = process.env;
  if (rootCommitment !== undefined) return rootCommitment;
  if (!socket)
    fail(
      "the contract is bound to the keyholder's root key: start the keyholder with CONTRACT_ADDRESS=none and set " +
        "EXECUTOR_SOCKET, or pass what its log says as --root-commitment (docs/operations.md)",
    );
  return rootCommitmentAt(socket).catch((error: unknown) =>
    fail(`the keyholder at ${socket} does not name its root commitment: ${(error as Error).message}`),
  );
}

async function deploy(signer: Wallet, wanted: Wanted, rootCommitment: string | undefined): Promise<void> {
  const { network, admin, payerDelaySeconds, serviceName, file } = wanted;
  const terms = { admin, delaySeconds: wanted.allowlistDelaySeconds, composeHashes: wanted.composeHashes };
  const allowlistAddress = wanted.allowlist ?? (await deployAllowlist(signer, terms));
  console.log(`ApplicationAllowlist ${allowlistAddress}: the application's id`);
  if (rootCommitment === undefined) return;
  const { deployment } = await deployAccountManager(
    signer,
    network,
    { admin, payerDelaySeconds, rootCommitment, allowlistAddress, serviceName },
    (receipt) => console.log(`AccountManager ${receipt.contractAddress} is deployed, in ${receipt.hash}`),
  );
  writeDeployment(file, deployment);
  const { contractAddress, forwarderAddress, budgetsAddress, chainId, blockNumber } = deployment;
  console.log(
    `AccountManager ${contractAddress} with forwarder ${forwarderAddress} and Budgets ${budgetsAddress} on chain ` +
      `${chainId}, block ${blockNumber}, bound to the root ${rootCommitment}; written to ${file}`,
  );
}

async function main(): Promise<void> {
  const wanted = readArguments();
  // Another contract derives other keys: the file of one in use must not be replaced unnoticed.
  if (!wanted.allowlistOnly && existsSync(wanted.file))
    fail(`${wanted.file} describes a deployment already: name another --network or --out`);
  const rootCommitment = wanted.allowlistOnly ? undefined : await commitmentOf(wanted);
  const provider = new JsonRpcProvider(wanted.rpc, undefined, { staticNetwork: true, cacheTimeout: -1 });
  try {
    // Once, as the library would look for the network of an endpoint that does not answer for ever.
    const { chainId } = await provider._detectNetwork();
    console.log(`Deploying to chain ${chainId} as ${wanted.network}`);
    const signer = (await askWallet("Deployer's private key (0x…): ")).connect(provider);
    await deploy(signer, wanted, rootCommitment);
  } finally {
    provider.destroy();
  }
}

function fail(message: string): never {
  throw new Error(message);
}

main().catch((error: unknown) => {
  console.error(shortOf(error));
  process.exitCode = 1;
});
