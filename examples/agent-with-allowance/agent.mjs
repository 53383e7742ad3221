// An agent that reads pages and pays for them by x402. It signs through `keywright mcp` with its own key, and keeps no
// other key. Here it wants as many pages as it can get, all at once.
import { appendFileSync, readFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const { PKP, PAGES = "15", PAYMENTS = "payments.jsonl" } = process.env;
const { url } = JSON.parse(readFileSync("shop.json", "utf8"));
const code = readFileSync("policy.js", "utf8");
const agent = new Client({ name: "agent", version: "1.0.0" });
await agent.connect(
  new StdioClientTransport({ command: "keywright", args: ["mcp", "--allow-writes"], env: process.env }),
);

async function signed(domain, message) {
  const fields = [
    ["from", "address"],
    ["to", "address"],
    ["value", "uint256"],
  ];
  const rest = [
    ["validAfter", "uint256"],
    ["validBefore", "uint256"],
    ["nonce", "bytes32"],
  ];
  const primaryType = "TransferWithAuthorization";
  const types = { [primaryType]: [...fields, ...rest].map(([name, type]) => ({ name, type })) };
  // Credit for the time limit is held while it runs.
  const input = { code, js_params: { pkpId: PKP, domain, types, primaryType, message }, timeout_ms: 10_000 };
  const { content } = await agent.callTool({ name: "runAction", arguments: input });
  const { response, error } = JSON.parse(content[0].text);
  if (error !== undefined) throw new Error(error.code);
  return response;
}

/** The page, paid for if the shop asks for it. Throws the code of a refused signature. */
async function read(path) {
  const first = await fetch(`${url}${path}`);
  if (first.status !== 402) return first.json();
  const [{ scheme, network, payTo, maxAmountRequired: value, asset, maxTimeoutSeconds, extra }] = (await first.json())
    .accepts;
  const authorization = {
    from: PKP,
    to: payTo,
    value,
    validAfter: "0",
    validBefore: String(Math.floor(Date.now() / 1000) + maxTimeoutSeconds),
    nonce: `0x${randomBytes(32).toString("hex")}`,
  };
  const signature = await signed({ ...extra, verifyingContract: asset }, authorization);
  appendFileSync(PAYMENTS, `${JSON.stringify({ authorization, signature })}\n`);
  const payment = { x402Version: 1, scheme, network, payload: { signature, authorization } };
  const header = Buffer.from(JSON.stringify(payment)).toString("base64");
  const paid = await fetch(`${url}${path}`, { headers: { "x-payment": header } });
  if (!paid.ok) throw new Error((await paid.json()).error);
  return paid.json();
}

const reads = await Promise.allSettled(Array.from({ length: Number(PAGES) }, (_, number) => read(`/pages/${number}`)));
const count = reads.filter(({ status }) => status === "fulfilled").length;
const refusals = new Set(reads.filter(({ status }) => status === "rejected").map(({ reason }) => reason.message));
console.log(
  `${count} of ${PAGES} pages read for ${(count * 0.1).toFixed(2)}; refused: ${[...refusals].join(", ") || "none"}`,
);
await agent.close();
