// Acts like an agent misled by a prompt: all its calls go through `keywright mcp` with its own key.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const agent = new Client({ name: "agent", version: "1.0.0" });
await agent.connect(
  new StdioClientTransport({ command: "keywright", args: ["mcp", "--allow-writes"], env: process.env }),
);

async function use(name, input) {
  const { content, isError = false } = await agent.callTool({ name, arguments: input });
  return { isError, answer: JSON.parse(content[0].text) };
}

const code = readFileSync("greet.js", "utf8");
let signed = 0;
let last;
while (signed < 100) {
  last = await use("runAction", { code, js_params: { pkpId: process.env.PKP, name: "World" } });
  if (last.isError) break;
  signed++;
}
console.log(`${signed} greetings signed, then ${last.answer.error?.code}`);

const { tools } = await agent.listTools();
if (!tools.some(({ name }) => name === "addUsageApiKey")) console.log("addUsageApiKey: there is no such tool");
const minted = await use("createWallet", { name: "mine" });
console.log(`createWallet: ${minted.answer.error?.code ?? "made"}`);
await agent.close();
