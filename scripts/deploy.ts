/**
 * `npm run deploy -- --network <name> --rpc <url> --admin <address> [--payer-delay <seconds>] [--service-name <name>]`: deploys the ERC-2771 forwarder and
 * AccountManager and writes deployments/<name>.json. Payers that are added once there is a managed account wait for the delay: 7 days unless told otherwise.
 * The deployer's key is asked for at the prompt and kept in memory only. Payers are registered afterwards (`npm run operator`), since their keys depend on
 * the contract's address.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { JsonRpcProvider, Wallet } from "ethers";
import { parseAddress } from "../protocol/ids";
import { deployAccountManager, writeDeployment } from "./deployment";
import { DEFAULT_SERVICE_NAME, SERVICE_NAME_PATTERN } from "../protocol/serviceName";
import { askSecret } from "./prompt";

const USAGE = "usage: npm run deploy -- --network <name> --rpc <url> --admin <address> [--payer-delay <seconds>] [--service-name <name>]";
const DEFAULT_PAYER_DELAY_SECONDS = 7 * 86_400;
const ROOT = join(__dirname, "..", "..");

async function main(): Promise<void> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({ options: { network: text, rpc: text, admin: text, "payer-delay": text, "service-name": text } });
  const { network, rpc, admin } = values;
  if (!network || !/^[a-z0-9-]+$/.test(network) || !rpc || !admin) throw new Error(USAGE);
  const adminAddress = parseAddress(admin);
  if (adminAddress === undefined) throw new Error(`--admin ${admin} is not an address`);
  const payerDelaySeconds = values["payer-delay"] === undefined ? DEFAULT_PAYER_DELAY_SECONDS : Number(values["payer-delay"]);
  if (!Number.isSafeInteger(payerDelaySeconds) || payerDelaySeconds < 0) throw new Error("--payer-delay is a whole number of seconds");
  const serviceName = values["service-name"] ?? DEFAULT_SERVICE_NAME;
  if (!SERVICE_NAME_PATTERN.test(serviceName)) throw new Error("--service-name is a letter and up to 31 letters and digits");

  const provider = new JsonRpcProvider(rpc, undefined, { staticNetwork: true });
  try {
    const signer = new Wallet(await askSecret("Deployer's private key (0x…): "), provider);
    const { deployment } = await deployAccountManager(signer, network, { admin: adminAddress, payerDelaySeconds, serviceName });
    const file = join(ROOT, "deployments", `${network}.json`);
    writeDeployment(file, deployment);
    console.log(
      `AccountManager ${deployment.contractAddress} with forwarder ${deployment.forwarderAddress} on chain ${deployment.chainId}, block ${deployment.blockNumber}; written to deployments/${network}.json`,
    );
  } finally {
    provider.destroy();
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
