// Decrypts for a reader who sends a recent signature and holds enough on chain. RPC_URL is defined in the text put
// before this file, so it is part of the code and of its CID.
const LEAST = 10n ** 18n;
const FRESH_SECONDS = 300;

async function balanceOf(address) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getBalance", params: [address, "latest"] });
  const answer = await fetch(RPC_URL, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
    signal: AbortSignal.timeout(10_000),
  });
  return BigInt((await answer.json()).result);
}

async function main({ pkpId, ciphertext, time, signature }) {
  if (!Number.isInteger(time) || Math.abs(Date.now() / 1000 - time) > FRESH_SECONDS)
    throw new Error("the signature is too old");
  // The signed text names the PKP and the time: the signature is valid for nothing else, and not for long.
  const reader = ethers.verifyMessage(`open ${pkpId} at ${time}`, signature);
  if ((await balanceOf(reader)) < LEAST) return { open: false, why: "the reader holds less than 1 coin" };
  return { open: true, content: await Actions.Decrypt({ pkpId, ciphertext }) };
}
