// Pays a list from a PKP. It holds a usage key and no other: what it cannot do is in the policy, which signs.
import { readFileSync } from "node:fs";
import { JsonRpcProvider, parseEther } from "ethers";
import { createClient } from "keywright";
import { keywrightSigner } from "keywright/ethers";

const { KEYWRIGHT_URL, KEYWRIGHT_API_KEY, RPC_URL, PKP } = process.env;
const payouts = JSON.parse(readFileSync(process.argv[2], "utf8"));

const client = createClient({ baseUrl: KEYWRIGHT_URL, apiKey: KEYWRIGHT_API_KEY });
// Uncached: the provider repeats an answer for 250 ms, and the next payment may ask for its nonce sooner.
const provider = new JsonRpcProvider(RPC_URL, undefined, { cacheTimeout: -1 });
const signer = keywrightSigner({
  client,
  pkpId: PKP,
  provider,
  actions: { transaction: { code: readFileSync("policy.js", "utf8") } },
});

for (const { to, coin } of payouts) {
  let sent;
  try {
    sent = await signer.sendTransaction({ to, value: parseEther(coin) });
    await sent.wait();
    console.log(`${to} ${coin} paid: ${sent.hash}`);
  } catch (error) {
    // One that is refused does not keep the others from being paid. What was signed may have been sent: paid again it
    // would be paid twice.
    const refused = sent === undefined && error.code === "signing_failed";
    const outcome = refused ? "refused" : `unknown (${sent?.hash ?? "not known to be sent"}), look before paying again`;
    console.log(`${to} ${coin} ${outcome}: ${error.message}`);
  }
}
provider.destroy();
