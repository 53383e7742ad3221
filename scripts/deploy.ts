/**
 * `npm run deploy -- --network <name> --rpc <url> --admin <address>`: deploys AccountManager and writes deployments/<name>.json.
 * The deployer's key is asked for at the prompt and kept in memory only. Payers are registered afterwards (`npm run operator`), since their keys depend on
 * the contract's address.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { JsonRpcProvider, Wallet } from "ethers";
import { parseAddress } from "../protocol/ids";
import { deployAccountManager, writeDeployment } from "./deployment";
import { askSecret } from "./prompt";

const ROOT = join(__dirname, "..", "..");

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { network: { type: "string" }, rpc: { type: "string" }, admin: { type: "string" } } });
  const { network, rpc, admin } = values;
  if (!network || !/^[a-z0-9-]+$/.test(network) || !rpc || !admin) throw new Error("usage: npm run deploy -- --network <name> --rpc <url> --admin <address>");
  const adminAddress = parseAddress(admin);
  if (adminAddress === undefined) throw new Error(`--admin ${admin} is not an address`);

  const provider = new JsonRpcProvider(rpc, undefined, { staticNetwork: true });
  try {
    const signer = new Wallet(await askSecret("Deployer's private key (0x…): "), provider);
    const { deployment } = await deployAccountManager(signer, network, adminAddress);
    const file = join(ROOT, "deployments", `${network}.json`);
    writeDeployment(file, deployment);
    console.log(
      `AccountManager ${deployment.contractAddress} on chain ${deployment.chainId}, block ${deployment.blockNumber}; written to deployments/${network}.json`,
    );
  } finally {
    provider.destroy();
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
