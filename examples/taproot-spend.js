// Spends taproot coins of the PKP: computes the BIP-341 digest of each input from the inputs and outputs, and signs it
// with the output key.
const MOST_FEE = 100_000n;

const sha256 = (...parts) => ethers.sha256(ethers.concat(parts));
const TAG = sha256(ethers.toUtf8Bytes("TapSighash"));
const little = (value, bytes) => new Uint8Array(bytes).map((_, at) => Number((BigInt(value) >> BigInt(8 * at)) & 255n));
// Its length in one byte, from 253 on it would be the sign of a longer number: the outputs that are signed would then
// not be those that were counted.
const script = (hex) => {
  if (ethers.dataLength(hex) > 252) throw new Error("a script has at most 252 bytes");
  return ethers.concat([Uint8Array.of(ethers.dataLength(hex)), hex]);
};

async function main({ pkpId, inputs, outputs, locktime = 0 }) {
  const total = (coins) => coins.reduce((sum, { value }) => sum + BigInt(value), 0n);
  const fee = total(inputs) - total(outputs);
  if (fee < 0n || fee > MOST_FEE) throw new Error(`a fee of ${fee} is not between 0 and ${MOST_FEE}`);
  const sequence = little(0xfffffffd, 4);
  const common = [
    little(2, 4),
    little(locktime, 4),
    sha256(...inputs.map(({ txid, vout }) => ethers.concat([ethers.getBytes(`0x${txid}`).reverse(), little(vout, 4)]))),
    sha256(...inputs.map(({ value }) => little(value, 8))),
    sha256(...inputs.map(({ scriptPubKey }) => script(scriptPubKey))),
    sha256(...inputs.map(() => sequence)),
    sha256(...outputs.map(({ value, scriptPubKey }) => ethers.concat([little(value, 8), script(scriptPubKey)]))),
  ];
  const signatures = inputs.map((_, index) => {
    // 0x0000: epoch 0, SIGHASH_DEFAULT. 0x00: key path, no annex.
    const digest = sha256(TAG, TAG, "0x0000", ...common, "0x00", little(index, 4));
    return Actions.signSchnorr({ pkpId, digest, merkleRoot: "0x" });
  });
  return { signatures: await Promise.all(signatures), fee: String(fee) };
}
