import { existsSync, readFileSync } from "node:fs";
import { JsonRpcProvider, Wallet } from "ethers";
import type { Address } from "../../protocol/ids";
import { deployAccountManager, deployBudgets, writeDeployment, type Deployment } from "../deployment";
import { DEVELOPMENT_DEPLOYER_KEY } from "./chain";

/** The contract of a development chain: the recorded one if the chain still has it, else a new one. */
export async function ensureDeployment(rpcUrl: string, file: string): Promise<Deployment> {
  const provider = new JsonRpcProvider(rpcUrl, undefined, { staticNetwork: true, cacheTimeout: -1 });
  try {
    const earlier = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Deployment) : undefined;
    const deployer = new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider);
    if (earlier && (await provider.getCode(earlier.contractAddress)) !== "0x")
      return { ...earlier, budgetsAddress: await deployBudgets(deployer, earlier.contractAddress as Address) };
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
