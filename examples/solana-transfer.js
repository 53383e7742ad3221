// Pays from the PKP's Solana account. It writes the transfer's message itself, so it signs nothing from the caller.
const MOST = 1_000_000_000n;
const SYSTEM_PROGRAM = new Uint8Array(32);

const bytesOf = (base58) => ethers.getBytes(ethers.toBeHex(ethers.decodeBase58(base58), 32));

async function main({ pkpId, to, lamports, recentBlockhash }) {
  const paid = BigInt(lamports);
  // In the message's 64 bits a negative number is a large one.
  if (paid < 0n) throw new Error("lamports must not be negative");
  if (paid > MOST) throw new Error(`${lamports} lamports is more than this action signs (${MOST})`);
  const from = ethers.getBytes(await Actions.getPublicKey({ pkpId, curve: "ed25519" }));
  const amount = new Uint8Array(12);
  const view = new DataView(amount.buffer);
  view.setUint32(0, 2, true); // the system program's instruction Transfer
  view.setBigUint64(4, paid, true);
  const message = Uint8Array.of(
    ...[1, 0, 1], // one signature; no read-only account signs; one read-only account does not sign
    ...[3, ...from, ...bytesOf(to), ...SYSTEM_PROGRAM],
    ...bytesOf(recentBlockhash),
    ...[1, 2, 2, 0, 1, amount.length, ...amount], // one instruction: program 2, accounts 0 and 1
  );
  const signature = await Actions.signEd25519({ pkpId, message });
  const transaction = ethers.concat(["0x01", signature, message]);
  return { transaction: ethers.encodeBase64(transaction), signature: ethers.encodeBase58(signature) };
}
