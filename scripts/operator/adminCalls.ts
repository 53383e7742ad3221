/** The contract admin's transactions: printed for a multisig, or signed with a key from the prompt. */
import type { BaseContract, JsonRpcProvider, Wallet } from "ethers";
import { askWallet } from "../prompt";
import type { Invocation } from "./command";

/** A contract with a two-step admin, connected to a provider. */
export type AdminContract = BaseContract & { admin(): Promise<string> };
export type AdminCall = readonly [functionName: string, argument?: string];

/** Prints each transaction, or signs it with the admin's key and waits for it. */
export async function carryOut(
  { sign, print }: Invocation,
  provider: JsonRpcProvider,
  contract: AdminContract,
  calls: readonly AdminCall[],
): Promise<void> {
  const wallet = sign ? await adminWallet(provider, await contract.admin()) : undefined;
  for (const [functionName, argument] of calls) {
    const args = argument === undefined ? [] : [argument];
    if (wallet === undefined) print(await forMultisig(provider, contract, functionName, args));
    else {
      const sent = await (contract.connect(wallet) as BaseContract).getFunction(functionName).send(...args);
      const receipt = await sent.wait();
      print(`${functionName}(${args.join()}): ${receipt?.status === 1 ? "done" : "FAILED"} in ${sent.hash}`);
    }
  }
}

async function adminWallet(provider: JsonRpcProvider, admin: string): Promise<Wallet> {
  const wallet = (await askWallet("Contract admin's private key (0x…): ")).connect(provider);
  if (wallet.address !== admin) throw new Error(`The contract's admin is ${admin}; this key is of ${wallet.address}.`);
  return wallet;
}

async function forMultisig(
  provider: JsonRpcProvider,
  contract: AdminContract,
  functionName: string,
  args: readonly string[],
): Promise<string> {
  const { chainId } = await provider.getNetwork();
  const data = contract.interface.encodeFunctionData(functionName, args);
  const to = `  to    ${await contract.getAddress()}`;
  return [`${functionName}(${args.join()})`, `  chain ${chainId}`, to, `  value 0`, `  data  ${data}`].join("\n");
}
