/**
 * Common first steps of end-to-end tests, through the SDK: an account, a group in which an action may use a PKP, a
 * usage key, a refusal.
 */
import { expect } from "chai";
import { verifyMessage } from "ethers";
import { ClientError, createAccount, createClient, type Client, type UsageKeyPermissions } from "../../client";
import { NO_PERMISSIONS } from "./http";

/** Signs a message with a PKP. A trailing comment changes its CID. */
export const SIGN = `async function main({ pkpId, message }) {
  return { signature: await Actions.signMessage({ pkpId, message }) };
}`;
/** Uses no PKP. */
export const HELLO = "async function main({ name }) { console.log(`greeting ${name}`); return `hello ${name}`; }";

export const NO_RIGHTS: UsageKeyPermissions = NO_PERMISSIONS;

export interface TestAccount {
  readonly client: Client;
  readonly apiKey: string;
  readonly accountId: string;
  readonly wallet: string;
}

export async function makeAccount(baseUrl: string): Promise<TestAccount> {
  const { account, client } = await createAccount({ baseUrl }, { account_name: "Acme", account_description: "" });
  return { client, apiKey: account.api_key, accountId: account.api_key_hash, wallet: account.wallet_address };
}

export interface TestGroup {
  readonly pkp: string;
  readonly group: string;
  readonly cid: string;
}

/** A group that lists a new PKP and `code`. */
export async function makeGroup(client: Client, code: string = SIGN): Promise<TestGroup> {
  const { wallet_address: pkp } = await client.createWallet({});
  const { group_id: group } = await client.addGroup({
    group_name: "group",
    group_description: "",
    pkp_ids_permitted: [pkp],
  });
  const cid = await client.getActionIpfsId(code);
  await client.addActionToGroup({ group_id: group, action_ipfs_cid: cid });
  return { pkp, group, cid };
}

export interface TestKey {
  readonly key: string;
  readonly keyId: string;
  readonly client: Client;
}

export async function makeUsageKey(
  account: Client,
  baseUrl: string,
  rights: Partial<UsageKeyPermissions>,
): Promise<TestKey> {
  const { usage_api_key: key, api_key_hash: keyId } = await account.addUsageApiKey({ ...NO_RIGHTS, ...rights });
  return { key, keyId, client: createClient({ baseUrl, apiKey: key }) };
}

const MESSAGE = "signed in a test";

/** Runs `code` and requires the PKP's signature. */
export async function expectSigned(client: Client, pkp: string, code: string = SIGN): Promise<void> {
  const run = await client.runAction({ code, js_params: { pkpId: pkp, message: MESSAGE } });
  expect(run.error).to.equal(undefined);
  expect(verifyMessage(MESSAGE, (run.response as { signature: string }).signature)).to.equal(pkp);
}

/** The error of a refused call; fails when the call succeeds. */
export async function refusal(call: Promise<unknown>): Promise<ClientError> {
  const outcome: unknown = await call.then(
    (value) => ({ value }),
    (reason: unknown) => reason,
  );
  if (outcome instanceof ClientError) return outcome;
  throw outcome instanceof Error ? outcome : new Error(`expected a refusal, got ${JSON.stringify(outcome)}`);
}

/** A refusal as text, for example "403 missing_scope". */
export async function refused(call: Promise<unknown>): Promise<string> {
  const { status, code } = await refusal(call);
  return `${status ?? "contract"} ${code}`;
}
