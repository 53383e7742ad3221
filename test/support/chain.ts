/** A chain with only the contract, and wallets with gas. For tests that need no service. */
import { JsonRpcProvider, NonceManager, Wallet, parseEther, type HDNodeWallet } from "ethers";
import { deployAccountManager } from "../../scripts/deployment";
import { DEVELOPMENT_DEPLOYER_KEY, startChain } from "../../scripts/dev/chain";
import { freePort } from "../../scripts/dev/ports";
import { TEST_ROOT_COMMITMENT } from "./rootKey";
import type { AccountManager } from "../../typechain-types";

export interface TestChain {
  readonly rpcUrl: string;
  readonly provider: JsonRpcProvider;
  readonly contract: AccountManager;
  readonly contractAddress: string;
  /** Pays for the test's set-up; the contract's admin. */
  readonly deployer: NonceManager;
  /** A new wallet on this chain, with ether by default. */
  wallet(ether?: string): Promise<HDNodeWallet>;
  stop(): Promise<void>;
}

export async function startTestChain(): Promise<TestChain> {
  const { rpcUrl, process } = await startChain({ port: await freePort() });
  const provider = connect(rpcUrl);
  const deployer = new NonceManager(new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider));
  const { contract } = await deployAccountManager(deployer, "test", {
    admin: await deployer.getAddress(),
    payerDelaySeconds: 0,
    rootCommitment: TEST_ROOT_COMMITMENT,
  });
  return {
    rpcUrl,
    provider,
    contract,
    contractAddress: await contract.getAddress(),
    deployer,
    wallet: (ether) => fundedWallet(provider, ether),
    stop: async () => {
      provider.destroy();
      await process.stop();
    },
  };
}

/** A provider without a cache: tests read state that has just changed. */
export function connect(rpcUrl: string): JsonRpcProvider {
  return new JsonRpcProvider(rpcUrl, undefined, { staticNetwork: true, cacheTimeout: -1, pollingInterval: 50 });
}

export async function fundedWallet(provider: JsonRpcProvider, ether = "10"): Promise<HDNodeWallet> {
  const wallet = Wallet.createRandom(provider);
  await provider.send("anvil_setBalance", [wallet.address, `0x${parseEther(ether).toString(16)}`]);
  return wallet;
}
