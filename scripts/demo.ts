/**
 * `npm run demo`: the main use case end to end over HTTP, on a running stack (http://127.0.0.1:8000, or KEYWRIGHT_URL)
 * or else on its own. Exits with 0 only if every check holds: the signature recovers to the PKP, foreign code is
 * refused, and so is a revoked key.
 */
import { verifyMessage } from "ethers";
import { ClientError, createClient, type Client } from "../client";
import { ACTION, makeAccount, makeUsageKey, must, permit } from "./demo/account";
import { startStack } from "./dev/stack";

const MESSAGE = "Keywright demo";

let steps = 0;
const say = (line: string): void => console.log(`${String((steps += 1)).padStart(2)}. ${line}`);

/** The error code of a refused call; a call that succeeds fails the demo. */
async function refusal(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ClientError)) throw error ?? new Error("The service did not refuse the call.");
  return error.code;
}

async function signAndCheck(bot: Client, pkp: string): Promise<void> {
  const run = await bot.runAction({ code: ACTION, js_params: { pkpId: pkp, message: MESSAGE }, pkp_id: pkp });
  must(!run.has_error, `the action ran (${run.error?.code ?? ""}: ${run.error?.message ?? ""})`);
  const { signature } = run.response as { signature: string };
  say(
    `signature   ${signature.slice(0, 22)}… (${Math.ceil(run.usage.duration_ms)} ms, ${run.usage.cost_cents} ¢, ` +
      `logs: ${JSON.stringify(run.logs.trim())})`,
  );
  const signer = verifyMessage(MESSAGE, signature);
  must(signer === pkp, `the signature recovers to the PKP (it recovers to ${signer})`);
  say(`recovered   ${signer}: the PKP signed`);
}

async function journey(baseUrl: string): Promise<void> {
  const { client } = await makeAccount(baseUrl, say);
  const { pkp, group } = await permit(client, say);
  const usageKey = await makeUsageKey(client, group, say);
  const bot = createClient({ baseUrl, apiKey: usageKey });
  await signAndCheck(bot, pkp);

  const foreign = await refusal(
    bot.runAction({ code: `${ACTION} // changed`, js_params: { pkpId: pkp, message: MESSAGE } }),
  );
  must(foreign === "action_not_permitted", `changed code is refused as action_not_permitted (it was ${foreign})`);
  say(`refused     changed code: ${foreign}`);

  await client.removeUsageApiKey({ usage_api_key: usageKey });
  const revoked = await refusal(bot.runAction({ code: ACTION, js_params: { pkpId: pkp, message: MESSAGE } }));
  must(revoked === "unknown_key", `the revoked key is refused as unknown_key (it was ${revoked})`);
  say(`refused     the revoked key: ${revoked}`);
  say(`credit      ${(await client.balance()).balance_display} left`);
}

async function answers(baseUrl: string): Promise<boolean> {
  const client = createClient({ baseUrl, retries: 0, timeoutMs: 2_000 });
  return client.getNodeChainConfig().then(
    () => true,
    () => false,
  );
}

async function main(): Promise<void> {
  const named = process.env["KEYWRIGHT_URL"];
  const baseUrl = named ?? `http://127.0.0.1:${process.env["PORT"] ?? "8000"}`;
  if (named !== undefined || (await answers(baseUrl))) {
    console.log(`Using the service at ${baseUrl}`);
    return journey(baseUrl);
  }
  console.log("No service is running: starting one for the demo …");
  const stack = await startStack();
  try {
    await journey(stack.baseUrl);
  } finally {
    await stack.stop();
  }
}

main().then(
  () => {
    console.log("Everything held.");
    process.exit(0);
  },
  (error: unknown) => {
    console.error(
      error instanceof ClientError ? `${error.code}: ${error.message}` : error instanceof Error ? error.message : error,
    );
    process.exit(1);
  },
);
