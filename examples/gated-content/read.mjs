// A reader: `new` makes a wallet and prints its address, otherwise the content of the file is asked for.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Wallet } from "ethers";
import { createClient } from "keywright";

const [, , what] = process.argv;
if (what === "new") {
  const wallet = Wallet.createRandom();
  writeFileSync("reader.key", wallet.privateKey, { mode: 0o600 });
  console.log(wallet.address);
} else if (existsSync("reader.key")) {
  const { KEYWRIGHT_URL, KEYWRIGHT_API_KEY, PKP } = process.env;
  const wallet = new Wallet(readFileSync("reader.key", "utf8"));
  const { ciphertext } = JSON.parse(readFileSync(what, "utf8"));
  const time = Math.floor(Date.now() / 1000);
  const signature = await wallet.signMessage(`open ${PKP} at ${time}`);
  const client = createClient({ baseUrl: KEYWRIGHT_URL, apiKey: KEYWRIGHT_API_KEY });
  const run = await client.runAction({
    code: readFileSync("gate.js", "utf8"),
    js_params: { pkpId: PKP, ciphertext, time, signature },
  });
  if (run.has_error) throw new Error(run.error.message);
  console.log(run.response.open ? `open: ${run.response.content}` : `closed: ${run.response.why}`);
} else throw new Error("make a reader first: node read.mjs new");
