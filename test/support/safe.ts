/**
 * A real Safe on the test chain, from its published artefacts: owners sign, the deployer executes. Runs any batch as
 * the Transaction Builder does: a single call as it is, several through MultiSendCallOnly.
 */
import { readFileSync } from "node:fs";
import {
  Contract,
  ContractFactory,
  ZeroAddress,
  concat,
  dataLength,
  solidityPacked,
  type Signer,
  type TransactionReceipt,
  type Wallet,
} from "ethers";

const CONTRACTS = "@safe-global/safe-smart-account/build/artifacts/contracts";

export interface SafeCall {
  readonly to: string;
  readonly value: string;
  readonly data: string;
}

export interface TestSafe {
  readonly address: string;
  /** Signed by exactly as many owners as the threshold requires; rejects when the inner call reverts. */
  execute(calls: readonly SafeCall[]): Promise<TransactionReceipt>;
  /** What its `isValidSignature` accepts for this digest, by so many of its owners; default: its threshold. */
  sign(digest: string, owners?: number): Promise<string>;
}

/** Any signer of typed data: a wallet, or a PKP. */
export type Owner = Pick<Wallet, "address" | "signTypedData">;

interface Artifact {
  readonly abi: unknown[];
  readonly bytecode: string;
}

/** A published contract by its source file, of which it has the name. */
export function safeArtifact(source: string): Artifact {
  const name = source.replace(/^.*\/|\.sol$/g, "");
  return JSON.parse(readFileSync(require.resolve(`${CONTRACTS}/${source}/${name}.json`), "utf8")) as Artifact;
}

async function deploy(source: string, deployer: Signer): Promise<Contract> {
  const { abi, bytecode } = safeArtifact(source);
  const contract = await new ContractFactory(abi as string[], bytecode, deployer).deploy();
  await contract.waitForDeployment();
  return contract as Contract;
}

/**
 * Deploys singleton, factory, MultiSendCallOnly and a proxy of the given owners. `deployer` pays, now and for each
 * execution; it need not be an owner.
 */
export async function deploySafe(deployer: Signer, owners: readonly Owner[], threshold: number): Promise<TestSafe> {
  // What Safe's own services set: with it a Safe answers ERC-1271.
  const handler = await deploy("handler/CompatibilityFallbackHandler.sol", deployer);
  const singleton = await deploy("Safe.sol", deployer);
  const factory = await deploy("proxies/SafeProxyFactory.sol", deployer);
  const multiSend = await deploy("libraries/MultiSendCallOnly.sol", deployer);
  const seats = owners.map((owner) => owner.address);
  const setup = singleton.interface.encodeFunctionData("setup", [
    seats,
    threshold,
    ZeroAddress,
    "0x",
    await handler.getAddress(),
    ZeroAddress,
    0,
    ZeroAddress,
  ]);
  const create = factory.getFunction("createProxyWithNonce");
  const address = String(await create.staticCall(await singleton.getAddress(), setup, 0));
  await (await create.send(await singleton.getAddress(), setup, 0)).wait();
  const safe = new Contract(address, singleton.interface, deployer);
  const multiSendAddress = await multiSend.getAddress();
  return {
    address,
    sign: (digest, count = threshold) => signMessage(safe, owners.slice(0, count), digest),
    execute: async (calls) =>
      executeSigned(safe, owners.slice(0, threshold), inner(calls, multiSend, multiSendAddress)),
  };
}

interface InnerCall extends SafeCall {
  readonly operation: 0 | 1;
}

function inner(calls: readonly SafeCall[], multiSend: Contract, multiSendAddress: string): InnerCall {
  const [only, ...others] = calls;
  if (only === undefined) throw new Error("nothing to execute");
  if (others.length === 0) return { ...only, operation: 0 };
  const packed = calls.map(({ to, value, data }) =>
    solidityPacked(["uint8", "address", "uint256", "uint256", "bytes"], [0, to, value, dataLength(data), data]),
  );
  return {
    to: multiSendAddress,
    value: "0",
    data: multiSend.interface.encodeFunctionData("multiSend", [concat(packed)]),
    operation: 1,
  };
}

const SAFE_TX = [
  ["to", "address"],
  ["value", "uint256"],
  ["data", "bytes"],
  ["operation", "uint8"],
  ["safeTxGas", "uint256"],
  ["baseGas", "uint256"],
  ["gasPrice", "uint256"],
  ["gasToken", "address"],
  ["refundReceiver", "address"],
  ["nonce", "uint256"],
].map(([name = "", type = ""]) => ({ name, type }));

/** One after the other, ordered by address, as a Safe wants them. */
async function signedByAll(safe: Contract, signers: readonly Owner[], types: Types, message: object): Promise<string> {
  const chainId = (await safe.runner?.provider?.getNetwork())?.chainId;
  const domain = { chainId, verifyingContract: await safe.getAddress() };
  const sorted = [...signers].sort((a, b) => (BigInt(a.address) < BigInt(b.address) ? -1 : 1));
  return concat(await Promise.all(sorted.map((owner) => owner.signTypedData(domain, types, { ...message }))));
}
type Types = Record<string, { name: string; type: string }[]>;

const signMessage = (safe: Contract, signers: readonly Owner[], digest: string): Promise<string> =>
  signedByAll(safe, signers, { SafeMessage: [{ name: "message", type: "bytes" }] }, { message: digest });

async function executeSigned(safe: Contract, signers: readonly Owner[], call: InnerCall): Promise<TransactionReceipt> {
  const nonce = (await safe.getFunction("nonce").staticCall()) as bigint;
  const message = {
    ...call,
    safeTxGas: 0,
    baseGas: 0,
    gasPrice: 0,
    gasToken: ZeroAddress,
    refundReceiver: ZeroAddress,
    nonce,
  };
  const signatures = await signedByAll(safe, signers, { SafeTx: SAFE_TX }, message);
  const { to, value, data, operation } = call;
  const sent = await safe
    .getFunction("execTransaction")
    .send(to, value, data, operation, 0, 0, 0, ZeroAddress, ZeroAddress, signatures);
  const receipt = await sent.wait();
  if (receipt === null) throw new Error("the execution has no receipt");
  return receipt as TransactionReceipt;
}
