// A shop that sells pages over HTTP by x402: it answers 402 with its terms until the request carries a signed payment,
// and has the payment carried out before it delivers.
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { Contract, ContractFactory, JsonRpcProvider, NonceManager, Wallet } from "ethers";
import solc from "solc";

const PRICE = "100000"; // 0.10 of a token with 6 decimals
const NETWORK = "local";
const provider = new JsonRpcProvider(process.env.RPC_URL, undefined, { cacheTimeout: -1 });
const wallet = Wallet.createRandom().connect(provider);
await provider.send("anvil_setBalance", [wallet.address, "0x8ac7230489e80000"]);
const shop = new NonceManager(wallet);

function compiled() {
  const { resolve } = createRequire(import.meta.url);
  const input = {
    language: "Solidity",
    sources: { "Token.sol": { content: readFileSync("Token.sol", "utf8") } },
    settings: { evmVersion: "prague", outputSelection: { "*": { Token: ["abi", "evm.bytecode.object"] } } },
  };
  const found = (path) => ({ contents: readFileSync(resolve(path), "utf8") });
  const { contracts, errors = [] } = JSON.parse(solc.compile(JSON.stringify(input), { import: found }));
  const failed = errors.filter(({ severity }) => severity === "error");
  if (failed.length > 0) throw new Error(failed.map(({ formattedMessage }) => formattedMessage).join("\n"));
  return contracts["Token.sol"].Token;
}

const { abi, evm } = compiled();
const deployed = await (await new ContractFactory(abi, evm.bytecode.object, shop).deploy()).waitForDeployment();
const asset = await deployed.getAddress();
const token = new Contract(asset, abi, shop);
const { chainId } = await provider.getNetwork();

const termsOf = (path) => ({
  scheme: "exact",
  network: NETWORK,
  maxAmountRequired: PRICE,
  resource: path,
  description: "A page",
  mimeType: "text/plain",
  payTo: wallet.address,
  maxTimeoutSeconds: 300,
  asset,
  extra: { name: "Test USD", version: "1", chainId: String(chainId) },
});

/** Carries the payment out; throws why it does not count. */
async function settle(header) {
  const { scheme, network, payload } = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
  const { from, to, value, validAfter, validBefore, nonce } = payload.authorization;
  if (scheme !== "exact" || network !== NETWORK) throw new Error("unsupported scheme");
  if (to !== wallet.address || value !== PRICE) throw new Error("not the price");
  const [r, s, v] = [
    payload.signature.slice(0, 66),
    `0x${payload.signature.slice(66, 130)}`,
    payload.signature.slice(130),
  ];
  const transfer = [from, to, value, validAfter, validBefore, nonce, `0x${v}`, r, s];
  await token.transferWithAuthorization.staticCall(...transfer);
  const sent = await token.transferWithAuthorization(...transfer, { gasLimit: 200_000 });
  if ((await sent.wait()).status !== 1) throw new Error("the payment failed");
  return sent.hash;
}

const server = createServer(async ({ url, headers }, response) => {
  const header = headers["x-payment"];
  const answer = (status, body) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  if (url.startsWith("/faucet/")) return answer(200, { hash: (await token.transfer(url.slice(8), 5_000_000)).hash });
  const unpaid = (error) => answer(402, { x402Version: 1, error, accepts: [termsOf(url)] });
  if (header === undefined) return unpaid("X-PAYMENT header is required");
  try {
    const transaction = await settle(header);
    response.setHeader(
      "x-payment-response",
      Buffer.from(JSON.stringify({ success: true, transaction })).toString("base64"),
    );
    answer(200, { page: `What ${url} says.` });
  } catch (error) {
    unpaid(error.shortMessage ?? error.message);
  }
});
server.listen(0, "127.0.0.1", () => {
  const terms = { url: `http://127.0.0.1:${server.address().port}`, asset, payTo: wallet.address };
  writeFileSync("shop.json", JSON.stringify({ ...terms, chainId: String(chainId), name: "Test USD", version: "1" }));
});
