/** The kinds of operations made under faults: their request, the same in every try, and their preparation. */
import { randomUUID } from "node:crypto";
import { Wallet, type HDNodeWallet } from "ethers";
import type Stripe from "stripe";
import { packedAccountId, parseAddress, type AccountId } from "../../protocol/ids";
import { signForward } from "./forwards";
import { Api, NO_PERMISSIONS, members, type HttpAnswer } from "./http";
import { signedConversion } from "./typedData";

export const OPERATION_KINDS = [
  "add_group",
  "remove_group",
  "new_account",
  "add_usage_api_key",
  "remove_usage_api_key",
  "add_action",
  "run_action",
  "convert",
  "relay",
  "payment",
] as const;
export type OperationKind = (typeof OPERATION_KINDS)[number];
/** Operations that cost the client's own account a cent. */
export const WRITES: readonly OperationKind[] = [
  "add_group",
  "remove_group",
  "add_usage_api_key",
  "remove_usage_api_key",
  "add_action",
];

const CODE = "async function main(params) { return params; }";
const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";

/** A client with an account in API mode, and with a wallet without native coin that owns another account. */
export interface TestClient {
  readonly api: Api;
  readonly id: AccountId;
  readonly owner: HDNodeWallet;
  readonly ownerId: AccountId;
  /** As the payer's browser uses it. */
  readonly processor: Stripe;
}

export interface Prepared {
  readonly kind: OperationKind;
  /** Identifies the operation on chain, in the ledger or in the executor's count. */
  readonly name: string;
  /** Of a conversion: the new owner. */
  readonly wallet?: string;
  /** Made for an operation that removes it again. */
  readonly isRemovedLater?: boolean;
  /** The same request each time. */
  readonly ask: () => Promise<HttpAnswer>;
}

/** An account with all rights and a group that lists any action; and a wallet with an account. */
export async function newTestClient(relayer: { readonly baseUrl: string }, processor: Stripe): Promise<TestClient> {
  const made = await new Api(relayer.baseUrl).must("/new_account", { account_name: "a", account_description: "" });
  const api = new Api(relayer.baseUrl, String(made["api_key"]));
  await api.must("/add_group", {
    group_name: "any",
    group_description: "",
    cid_hashes_permitted: [`0x${"0".repeat(64)}`],
  });
  const owner = Wallet.createRandom();
  await api.with(undefined).must("/relay", await forwardOf(api, owner, "newChainSecuredAccount", ["mine", ""]));
  const address = parseAddress(owner.address);
  if (address === undefined) throw new Error("a wallet has an address");
  return { api, id: String(made["api_key_hash"]) as AccountId, owner, ownerId: packedAccountId(address), processor };
}

type Make = (needed: Prepared) => Promise<HttpAnswer>;

/** `make` performs the operation's prerequisites. */
export async function prepare(client: TestClient, kind: OperationKind, make: Make): Promise<Prepared> {
  const name = randomUUID();
  return { kind, name, ...(await PREPARATIONS[kind](client, name, make)) };
}

type Rest = Omit<Prepared, "kind" | "name"> & { readonly name?: string };

const keyed = (): { headers: Record<string, string> } => ({ headers: { "idempotency-key": randomUUID() } });

function posted(api: Api, path: string, body: object): Rest {
  const options = keyed();
  return { ask: () => api.post(path, body, options) };
}

const PREPARATIONS: Record<OperationKind, (client: TestClient, name: string, make: Make) => Promise<Rest>> = {
  add_group: async ({ api }, name) => posted(api, "/add_group", { group_name: name, group_description: "" }),
  remove_group: async (client, _, make) => {
    const group = await prepare(client, "add_group", make);
    const { group_id: id } = members(await make({ ...group, isRemovedLater: true }));
    return { ...posted(client.api, "/remove_group", { group_id: id }), name: group.name };
  },
  new_account: async ({ api }) =>
    posted(api.with(undefined), "/new_account", { account_name: "a", account_description: "" }),
  add_usage_api_key: async ({ api }, name) => posted(api, "/add_usage_api_key", { ...NO_PERMISSIONS, name }),
  remove_usage_api_key: async (client, _, make) => {
    const key = await prepare(client, "add_usage_api_key", make);
    const { usage_api_key: secret } = members(await make({ ...key, isRemovedLater: true }));
    return { ...posted(client.api, "/remove_usage_api_key", { usage_api_key: secret }), name: key.name };
  },
  add_action: async ({ api }, name) => posted(api, "/add_action", { action_ipfs_cid: CID, name, description: "" }),
  run_action: async ({ api }, name) => posted(api, "/run_action", { code: CODE, js_params: { name } }),
  convert: async (client, _, make) => {
    const { api_key: key } = members(await make(await prepare(client, "new_account", make)));
    const wallet = Wallet.createRandom();
    const body = { ...(await conversionOf(client.api, wallet)), new_admin_wallet_address: wallet.address };
    return {
      ...posted(client.api.with(String(key)), "/convert_to_chain_secured_account", body),
      wallet: wallet.address,
    };
  },
  relay: async ({ api, owner, ownerId }, name) => {
    const body = await forwardOf(api, owner, "addGroup", [ownerId, name, "", [], []]);
    return { ask: () => api.with(undefined).post("/relay", body) };
  },
  payment: async ({ api, processor }, name) => ({ ask: () => pay(api, processor, name) }),
};

/** Makes the intent under the operation's name, pays it at the processor, and confirms it. */
async function pay(api: Api, processor: Stripe, name: string): Promise<HttpAnswer> {
  const made = await api.post(
    "/billing/create_payment_intent",
    { amount_cents: 500 },
    { headers: { "idempotency-key": name } },
  );
  if (made.status !== 200) return made;
  const id = String(members(made)["payment_intent_id"]);
  if ((await processor.paymentIntents.retrieve(id)).status !== "succeeded")
    await processor.paymentIntents.confirm(id, { payment_method: "pm_card_visa" });
  return api.post(
    "/billing/confirm_payment",
    { payment_intent_id: id },
    { headers: { "idempotency-key": `confirm ${name}` } },
  );
}

/** Retries reads until answered: only the operation itself is under test. */
async function read(api: Api, path: string): Promise<Record<string, unknown>> {
  for (;;) {
    const answer = await api.get(path).catch(() => undefined);
    if (answer?.status === 200) return members(answer);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

async function forwardOf(
  api: Api,
  wallet: HDNodeWallet,
  functionName: string,
  args: unknown[],
): Promise<Record<string, string>> {
  const config = await read(api, "/get_node_chain_config");
  const { nonce } = await read(api, `/relay_nonce?address=${wallet.address}`);
  const deadline = String(Math.floor(Date.now() / 1000) + 80_000);
  return signForward(config, wallet, functionName, args, { nonce: String(nonce), deadline });
}

async function conversionOf(api: Api, wallet: HDNodeWallet): Promise<{ typed_data: unknown; signature: string }> {
  const { typed_data_domain: domain } = (await read(api, "/get_node_chain_config")) as {
    typed_data_domain: Record<string, string | number>;
  };
  return signedConversion(domain, wallet.address, wallet);
}
