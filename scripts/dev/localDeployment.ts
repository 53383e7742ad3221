import { existsSync, readFileSync } from "node:fs";
import { JsonRpcProvider, Wallet } from "ethers";
import { ApplicationAllowlist__factory } from "../../typechain-types";
import type { Address } from "../../protocol/ids";
import { deployAccountManager, deployAllowlist, deployBudgets, writeDeployment, type Deployment } from "../deployment";
import { DEVELOPMENT_ALLOWLIST_DEPLOYER_KEY, DEVELOPMENT_DEPLOYER_KEY } from "./chain";

/**
 * The contract of a development chain: the recorded one if the chain still has it, else a new one. Its root is asked
 * for only then.
 */
export async function ensureDeployment(
  rpcUrl: string,
  file: string,
  rootCommitment: () => Promise<string>,
  allowlistAddress?: string,
): Promise<Deployment> {
  return withProvider(rpcUrl, async (provider) => {
    const earlier = recorded(file);
    const deployer = new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider);
    if (earlier && (await provider.getCode(earlier.contractAddress)) !== "0x")
      return { ...earlier, budgetsAddress: await deployBudgets(deployer, earlier.contractAddress as Address) };
    const { deployment } = await deployAccountManager(deployer, "localhost", {
      admin: deployer.address,
      payerDelaySeconds: 0,
      rootCommitment: await rootCommitment(),
      ...(allowlistAddress === undefined ? {} : { allowlistAddress }),
    });
    writeDeployment(file, deployment);
    return deployment;
  });
}

/**
 * The allow-list of a development chain: the recorded one if it allows the image, else a new one. As with dstack its
 * address is the application's id, so it is there before the machine; a deployer of its own keeps the contract's
 * address the same.
 */
export async function ensureAllowlist(rpcUrl: string, file: string, composeHash: string): Promise<string> {
  return withProvider(rpcUrl, async (provider) => {
    const earlier = recorded(file)?.allowlistAddress;
    if (earlier !== undefined && (await provider.getCode(earlier)) !== "0x") {
      const list = ApplicationAllowlist__factory.connect(earlier, provider);
      if (await list.isComposeHashAllowed(composeHash)) return earlier;
    }
    return deployAllowlist(new Wallet(DEVELOPMENT_ALLOWLIST_DEPLOYER_KEY, provider), {
      admin: new Wallet(DEVELOPMENT_DEPLOYER_KEY).address,
      delaySeconds: 0,
      composeHashes: [composeHash],
    });
  });
}

const recorded = (file: string): Deployment | undefined =>
  existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Deployment) : undefined;

async function withProvider<T>(rpcUrl: string, work: (provider: JsonRpcProvider) => Promise<T>): Promise<T> {
  const provider = new JsonRpcProvider(rpcUrl, undefined, { staticNetwork: true, cacheTimeout: -1 });
  try {
    return await work(provider);
  } finally {
    provider.destroy();
  }
}
