/**
 * `npm run deploy -- --network <name> --rpc <url> --admin <address> [--payer-delay <seconds>] [--service-name <name>]
 * [--out <file>]`: deploys the ERC-2771 forwarder, AccountManager and Budgets, and writes deployments/<name>.json, or
 * the file given. Payers added once a managed account exists wait for the delay, 7 days by default. The deployer's key
 * is entered at the prompt and kept in memory only. Payers are registered afterwards (`npm run operator`), since their
 * keys depend on the contract's address.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { JsonRpcProvider } from "ethers";
import { parseAddress } from "../protocol/ids";
import { deployAccountManager, writeDeployment } from "./deployment";
import { DEFAULT_SERVICE_NAME, SERVICE_NAME_PATTERN } from "../protocol/serviceName";
import { askWallet } from "./prompt";

const USAGE =
  "usage: npm run deploy -- --network <name> --rpc <url> --admin <address> [--payer-delay <seconds>] " +
  "[--service-name <name>] [--out <file>]";
const DEFAULT_PAYER_DELAY_SECONDS = 7 * 86_400;
const ROOT = join(__dirname, "..", "..");

async function main(): Promise<void> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: { network: text, rpc: text, admin: text, "payer-delay": text, "service-name": text, out: text },
  });
  const { network, rpc, admin } = values;
  if (!network || !/^[a-z0-9-]+$/.test(network) || !rpc || !admin) throw new Error(USAGE);
  const adminAddress = parseAddress(admin);
  if (adminAddress === undefined) throw new Error(`--admin ${admin} is not an address`);
  const payerDelaySeconds =
    values["payer-delay"] === undefined ? DEFAULT_PAYER_DELAY_SECONDS : Number(values["payer-delay"]);
  if (!Number.isSafeInteger(payerDelaySeconds) || payerDelaySeconds < 0)
    throw new Error("--payer-delay is a whole number of seconds");
  const serviceName = values["service-name"] ?? DEFAULT_SERVICE_NAME;
  if (!SERVICE_NAME_PATTERN.test(serviceName))
    throw new Error("--service-name is a letter and up to 31 letters and digits");

  const file = values.out ?? join(ROOT, "deployments", `${network}.json`);
  const provider = new JsonRpcProvider(rpc, undefined, { staticNetwork: true, cacheTimeout: -1 });
  try {
    const signer = (await askWallet("Deployer's private key (0x…): ")).connect(provider);
    const { deployment } = await deployAccountManager(signer, network, {
      admin: adminAddress,
      payerDelaySeconds,
      serviceName,
    });
    writeDeployment(file, deployment);
    const { contractAddress, forwarderAddress, budgetsAddress, chainId, blockNumber } = deployment;
    console.log(
      `AccountManager ${contractAddress} with forwarder ${forwarderAddress} and Budgets ${budgetsAddress} on chain ` +
        `${chainId}, block ${blockNumber}; written to ${file}`,
    );
  } finally {
    provider.destroy();
  }
}

main().catch((error: unknown) => {
  // The library's full message quotes the whole transaction; print the short one.
  console.error(
    error instanceof Error && "shortMessage" in error
      ? error.shortMessage
      : error instanceof Error
        ? error.message
        : error,
  );
  process.exitCode = 1;
});
