/**
 * The deployment file and how to deploy. Written by scripts only; read by operators, integrators and the services'
 * configuration.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { Transaction, ZeroHash, concat, keccak256, toUtf8Bytes, type Signer, type TransactionReceipt } from "ethers";
import {
  AccountManager__factory,
  ApplicationAllowlist__factory,
  ERC2771Forwarder__factory,
  type AccountManager,
} from "../typechain-types";
import { DEFAULT_SERVICE_NAME, forwarderName } from "../protocol/serviceName";
import { DETERMINISTIC_DEPLOYER, budgetsAddressOf, budgetsCode } from "../protocol/budgets";
import { keyNamespaceOf } from "../protocol/namespace";
import type { Address } from "../protocol/ids";

export interface Deployment {
  readonly network: string;
  readonly chainId: string;
  readonly contractAddress: string;
  /** OpenZeppelin's ERC2771Forwarder, deployed alongside; owners may act through it. */
  readonly forwarderAddress: string;
  /** Follows from the contract's address: see protocol/budgets.ts. */
  readonly budgetsAddress: string;
  readonly blockNumber: number;
  readonly transactionHash: string;
  readonly constructorArguments: readonly string[];
  /** keccak256 of the ABI's JSON: shows whether a client was generated from this contract's interface. */
  readonly abiHash: string;
  readonly keyNamespace: string;
  /** To the root of all keys: a keyholder with another root does not start with this contract. */
  readonly rootCommitment: string;
  /** Which images may run: the application's id for dstack's key management. */
  readonly allowlistAddress?: string;
}

export interface DeploymentTerms {
  /** The contract's administrator. */
  readonly admin: string;
  /** How long the addition of a payer waits once a managed account exists. */
  readonly payerDelaySeconds: number;
  /** As the keyholder names it: `rootCommitmentOf`. */
  readonly rootCommitment: string;
  /** Recorded with the contract. */
  readonly allowlistAddress?: string;
  /** The name in the forwarder's EIP-712 domain. */
  readonly serviceName?: string;
}

/**
 * Deploys the forwarder, the contract and its budgets, and describes the result. Says when the contract is there: what
 * fails afterwards must not lose it.
 */
export async function deployAccountManager(
  signer: Signer,
  network: string,
  { admin, payerDelaySeconds, rootCommitment, allowlistAddress, serviceName = DEFAULT_SERVICE_NAME }: DeploymentTerms,
  onDeployed?: (receipt: TransactionReceipt) => void,
): Promise<{ contract: AccountManager; deployment: Deployment }> {
  const forwarder = await (
    await new ERC2771Forwarder__factory(signer).deploy(forwarderName(serviceName))
  ).waitForDeployment();
  const forwarderAddress = await forwarder.getAddress();
  const contract = await new AccountManager__factory(signer).deploy(
    admin,
    payerDelaySeconds,
    forwarderAddress,
    rootCommitment,
  );
  const receipt = await contract.deploymentTransaction()?.wait();
  if (!receipt || receipt.status !== 1) throw new Error("the deployment transaction failed");
  onDeployed?.(receipt);
  const { chainId } = (await signer.provider?.getNetwork()) ?? raise("the signer has no provider");
  const contractAddress = await contract.getAddress();
  const keyNamespace = await contract.keyNamespace();
  if (BigInt(keyNamespace) !== BigInt(keyNamespaceOf(chainId, contractAddress as Address)))
    throw new Error("the contract's key namespace does not match its address and chain");
  const deployment: Deployment = {
    network,
    chainId: chainId.toString(),
    contractAddress,
    forwarderAddress,
    budgetsAddress: await deployBudgets(signer, contractAddress as Address),
    blockNumber: receipt.blockNumber,
    transactionHash: receipt.hash,
    constructorArguments: [admin, String(payerDelaySeconds), forwarderAddress, rootCommitment],
    abiHash: keccak256(toUtf8Bytes(JSON.stringify(AccountManager__factory.abi))),
    keyNamespace: keyNamespaceOf(chainId, contractAddress as Address),
    rootCommitment,
    ...(allowlistAddress === undefined ? {} : { allowlistAddress }),
  };
  return { contract, deployment };
}

/** Deploys the budgets of an account manager, unless they are there: their address follows from it. */
export async function deployBudgets(signer: Signer, accountManager: Address): Promise<string> {
  const provider = signer.provider ?? raise("the signer has no provider");
  const address = budgetsAddressOf(accountManager);
  if ((await provider.getCode(address)) !== "0x") return address;
  if ((await provider.getCode(DETERMINISTIC_DEPLOYER)) === "0x") await deployDeployer(signer);
  const data = concat([ZeroHash, budgetsCode(accountManager)]);
  await (await signer.sendTransaction({ to: DETERMINISTIC_DEPLOYER, data })).wait();
  if ((await provider.getCode(address)) === "0x")
    throw new Error(`there is no contract at ${address} after its deployment`);
  return address;
}

/** The transaction that makes the deterministic deployer on any network, signed by nobody's key. */
const DEPLOYER_TRANSACTION =
  "0xf8a58085174876e800830186a08080b853604580600e600039806000f350fe7fffffffffffffffffffffffffffffffffffffffffffffff" +
  "ffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf31ba0" +
  `${"22".repeat(32)}a0${"22".repeat(32)}`;

async function deployDeployer(signer: Signer): Promise<void> {
  const { from, gasLimit, gasPrice } = Transaction.from(DEPLOYER_TRANSACTION);
  const value = gasLimit * (gasPrice ?? 0n);
  await (await signer.sendTransaction({ to: from, value })).wait();
  const sent = await signer.provider?.broadcastTransaction(DEPLOYER_TRANSACTION);
  await sent?.wait();
}

export interface AllowlistTerms {
  readonly admin: string;
  /** How long an added image waits before it counts. */
  readonly delaySeconds: number;
  /** Of the first images, which count at once: 0x and 64 hex digits each. */
  readonly composeHashes: readonly string[];
}

const ANY_DEVICE = `0x${"00".repeat(32)}`;

/** Deploys the allow-list for any device; returns its address. */
export async function deployAllowlist(signer: Signer, terms: AllowlistTerms): Promise<string> {
  const { admin, delaySeconds, composeHashes } = terms;
  const factory = new ApplicationAllowlist__factory(signer);
  const list = await factory.deploy(admin, delaySeconds, [...composeHashes], [ANY_DEVICE]);
  return (await list.waitForDeployment()).getAddress();
}

export function writeDeployment(file: string, deployment: Deployment): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(deployment, null, 2)}\n`);
}

function raise(message: string): never {
  throw new Error(message);
}
