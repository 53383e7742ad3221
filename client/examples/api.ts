/** The snippets of docs/sdk.md, in one piece: test/e2e/documentation.test.ts runs it and compares it with the page. */
import { ClientError, createAccount, createClient, everyItem } from "..";

const CODE = `async function main({ name }) { return "hello " + name; }`;

export async function apiMode(
  baseUrl: string,
  store: (name: string, value: string) => Promise<void>,
  pause: (seconds: number) => Promise<void>,
) {
  // snippet: account
  const { account, client } = await createAccount(
    { baseUrl },
    { account_name: "Acme", account_description: "Treasury" },
  );
  await store("account-key", account.api_key); // shown once
  // end

  // snippet: manage
  const { wallet_address } = await client.createWallet({ name: "treasury" });
  const { group_id } = await client.addGroup({
    group_name: "greeters",
    group_description: "",
    pkp_ids_permitted: [wallet_address],
  });
  await client.addActionToGroup({ group_id, action_ipfs_cid: await client.getActionIpfsId(CODE) });
  // end

  // snippet: run
  const bot = createClient({ baseUrl, apiKey: account.api_key });
  const run = await bot.runAction({ code: CODE, js_params: { name: "world" } });
  if (run.has_error) throw new Error(`${run.error?.code}: ${run.error?.message}\n${run.logs}`);
  // end

  // snippet: lists
  const { items, total } = await client.listGroups({ page_size: 10 });
  for await (const wallet of everyItem(client.listWalletsInGroup, { group_id }))
    await store(wallet.name, wallet.wallet_address);
  // end

  // snippet: keys
  const { keys } = await client.publicKeys({ pkp_id: wallet_address });
  for (const { curve, public_key } of keys) await store(curve, public_key);
  // end

  // snippet: stop
  await client.freezeAccount();
  await client.setWalletOps({ pkp_id: wallet_address, denied_ops: ["getPrivateKey"] });
  await client.revokeAllUsageApiKeys();
  await client.unfreezeAccount();
  // end

  // snippet: errors
  try {
    await client.removeGroup({ group_id: "99" });
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    if (error.code === "unknown_group") await store("gone already", error.requestId ?? "");
    else if (error.code === "insufficient_credit") await store("cents missing", String(error.facts["required_cents"]));
    else if (error.retryable) await pause(error.retryAfterSeconds ?? 1);
    else throw error;
  }
  // end

  // snippet: repeat
  const once = { idempotencyKey: "order-4711" };
  const first = await client.addGroup({ group_name: "order 4711", group_description: "" }, once);
  // Sent again: the same answer, and no second group.
  const again = await client.addGroup({ group_name: "order 4711", group_description: "" }, once);
  // end
  return { run, items, total, same: first.group_id === again.group_id };
}
