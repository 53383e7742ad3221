/** ChainSecured owners on a chain of their own; the service is a double that only says where the contract is. */
import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Wallet, type HDNodeWallet, type Signer } from "ethers";
import {
  ClientError,
  createChainSecuredClient,
  type ChainSecuredClient,
  type ChainSecuredOptions,
  type MintedUsageKey,
  type MintedWallet,
} from "../../client";
import { PathKind, actionHashOf, derivationPath, keyIdOf, type ApiKey, type Cid } from "../../protocol/ids";
import { NO_PERMISSIONS } from "./http";
import { startTestChain, type TestChain } from "./chain";

export const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";
export const HASH = actionHashOf(CID as Cid);
export const OTHER_CID = "Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD";

export async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => "nothing was refused",
    (reason: unknown) => reason,
  );
  return error instanceof ClientError ? error.code : String(error);
}

/** A mint for `client`'s account, as the executor makes it. */
export function minted(client: ChainSecuredClient, kind: PathKind): MintedWallet {
  return {
    wallet_address: Wallet.createRandom().address,
    derivation_path: derivationPath(kind, randomBytes(15), client.accountId),
  };
}
export function mintedKey(client: ChainSecuredClient): MintedUsageKey {
  return { ...minted(client, PathKind.usageKey), api_key_hash: keyIdOf(randomBytes(32).toString("base64") as ApiKey) };
}
export const permissions = (groups: readonly (string | number)[], more = {}) => ({
  ...NO_PERMISSIONS,
  name: "bot",
  description: "runs",
  execute_in_groups: [...groups],
  ...more,
});

export interface OwnerBed {
  chain(): TestChain;
  ownerOf(signer: Signer, more?: Partial<ChainSecuredOptions>): Promise<ChainSecuredClient>;
  /** A funded wallet with an account. */
  freshOwner(): Promise<{ wallet: HDNodeWallet; owner: ChainSecuredClient }>;
}

/** Call inside `describe`. */
export function ownerBed(): OwnerBed {
  let chain: TestChain;
  let service: Server;
  let baseUrl: string;

  before(async () => {
    chain = await startTestChain();
    const config = {
      contract_address: chain.contractAddress,
      chain_id: 31337,
      chain_name: "test",
      is_evm: true,
      testnet: true,
      token: "ETH",
      key_namespace: await chain.contract.keyNamespace(),
      typed_data_domain: { name: "Keywright ChainSecured", version: "1", chainId: "31337" },
    };
    service = createServer((_request, response) =>
      response.setHeader("content-type", "application/json").end(JSON.stringify(config)),
    );
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
    baseUrl = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  });
  after(async () => {
    service.closeAllConnections();
    service.close();
    await chain.stop();
  });

  const ownerOf = (signer: Signer, more: Partial<ChainSecuredOptions> = {}) =>
    createChainSecuredClient({ baseUrl, signer, ...more });

  async function freshOwner(): Promise<{ wallet: HDNodeWallet; owner: ChainSecuredClient }> {
    const wallet = await chain.wallet();
    const owner = await ownerOf(wallet);
    await owner.createAccount({ account_name: "Acme", account_description: "Treasury" });
    return { wallet, owner };
  }

  return { chain: () => chain, ownerOf, freshOwner };
}
