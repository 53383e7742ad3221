/**
 * The deployment file and how to deploy. Written by scripts only; read by operators, integrators and the services'
 * configuration.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { keccak256, toUtf8Bytes, type Signer } from "ethers";
import {
  AccountManager__factory,
  ApplicationAllowlist__factory,
  ERC2771Forwarder__factory,
  type AccountManager,
} from "../typechain-types";
import { DEFAULT_SERVICE_NAME, forwarderName } from "../protocol/serviceName";
import { keyNamespaceOf } from "../protocol/namespace";
import type { Address } from "../protocol/ids";

export interface Deployment {
  readonly network: string;
  readonly chainId: string;
  readonly contractAddress: string;
  /** OpenZeppelin's ERC2771Forwarder, deployed alongside; owners may act through it. */
  readonly forwarderAddress: string;
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

/** Deploys the forwarder and the contract, and describes the result. */
export async function deployAccountManager(
  signer: Signer,
  network: string,
  { admin, payerDelaySeconds, rootCommitment, allowlistAddress, serviceName = DEFAULT_SERVICE_NAME }: DeploymentTerms,
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
