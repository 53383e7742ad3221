import { existsSync, readFileSync } from "node:fs";
import { JsonRpcProvider, Wallet } from "ethers";
import { deployAccountManager, writeDeployment, type Deployment } from "../deployment";
import { DEVELOPMENT_DEPLOYER_KEY } from "./chain";

/** The contract of a development chain: the recorded one if the chain still has it, else a new one. */
export async function ensureDeployment(rpcUrl: string, file: string): Promise<Deployment> {
  const provider = new JsonRpcProvider(rpcUrl, undefined, { staticNetwork: true, cacheTimeout: -1 });
  try {
    const earlier = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Deployment) : undefined;
    if (earlier && (await provider.getCode(earlier.contractAddress)) !== "0x") return earlier;
    const deployer = new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider);
    const { deployment } = await deployAccountManager(deployer, "localhost", {
      admin: deployer.address,
      payerDelaySeconds: 0,
    });
    writeDeployment(file, deployment);
    return deployment;
  } finally {
    provider.destroy();
  }
}
