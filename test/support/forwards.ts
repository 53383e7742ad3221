/** Forward requests as an owner's wallet signs them for `POST /relay`. */
import type { HDNodeWallet, Interface, Wallet } from "ethers";
import type { ForwardDomain } from "../../protocol/forward";
import { FORWARD_TYPES } from "../../protocol/forwardShape";
import type { Address } from "../../protocol/ids";
import { AccountManager__factory } from "../../typechain-types";
import { members, type Api } from "./http";

const FORWARDER_NAME = "Keywright Forwarder";
/** For requests that are checked without a chain. */
export const FORWARDER = "0x00000000000000000000000000000000000000F0" as Address;
export const FORWARD_DOMAIN: ForwardDomain = {
  name: FORWARDER_NAME,
  version: "1",
  chainId: 31_337n,
  verifyingContract: FORWARDER,
};

const ABI: Interface = AccountManager__factory.createInterface();

export type ForwardOverrides = Partial<Record<"from" | "to" | "value" | "gas" | "nonce" | "deadline" | "data", string>>;

export const relayNonce = async (api: Api, { address }: { address: string }): Promise<string> =>
  String(members(await api.get(`/relay_nonce?address=${address}`))["nonce"]);

/** The body of `POST /relay`, with the signer's next nonce by default. */
export async function signedForward(
  api: Api,
  wallet: HDNodeWallet | Wallet,
  functionName: string,
  args: unknown[],
  overrides: ForwardOverrides = {},
): Promise<Record<string, string>> {
  const config = members(await api.get("/get_node_chain_config"));
  const nonce = overrides.nonce ?? (await relayNonce(api, wallet));
  return signForward(config, wallet, functionName, args, { ...overrides, nonce });
}

/** `config` is the answer of `GET /get_node_chain_config`. */
export async function signForward(
  config: Record<string, unknown>,
  wallet: HDNodeWallet | Wallet,
  functionName: string,
  args: unknown[],
  overrides: ForwardOverrides & { nonce: string },
): Promise<Record<string, string>> {
  const domain = {
    name: FORWARDER_NAME,
    version: "1",
    chainId: config["chain_id"] as number,
    verifyingContract: String(config["forwarder_address"]),
  };
  const unsigned = {
    from: wallet.address,
    to: String(config["contract_address"]),
    value: "0",
    gas: "800000",
    deadline: String(Math.floor(Date.now() / 1000) + 600),
    data: ABI.encodeFunctionData(functionName, args),
    ...overrides,
  };
  return { ...unsigned, signature: await wallet.signTypedData(domain, { ...FORWARD_TYPES }, unsigned) };
}
