// A price oracle: queries several sources and signs their median with the time. It refuses when too few sources answer
// or when they disagree. PAIR, SOURCES and QUORUM are defined in the text put before this file: they are part of the
// code and of its CID, so that no caller can name other sources.
const MOST_SPREAD = 0.05;

async function priceFrom(url) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(5000) });
  const { price } = await answer.json();
  if (!(answer.ok && Number.isFinite(price) && price > 0)) throw new Error(`${url} gave no price`);
  return price;
}

async function main({ pkpId }) {
  const answers = await Promise.allSettled(SOURCES.map(priceFrom));
  for (const { reason } of answers) if (reason) console.warn(reason.message);
  const prices = answers.flatMap(({ value }) => (value === undefined ? [] : [value])).sort((a, b) => a - b);
  if (prices.length < QUORUM) throw new Error(`only ${prices.length} of ${SOURCES.length} sources answered`);
  const median = prices[Math.floor(prices.length / 2)];
  if ((prices.at(-1) - prices[0]) / median > MOST_SPREAD) throw new Error(`the sources disagree: ${prices.join(", ")}`);

  const report = {
    pair: PAIR,
    price: String(Math.round(median * 1e8)),
    decimals: 8,
    time: Math.floor(Date.now() / 1000),
  };
  const hash = ethers.solidityPackedKeccak256(
    ["string", "uint256", "uint8", "uint64"],
    [report.pair, report.price, report.decimals, report.time],
  );
  return { report, hash, signature: await Actions.signDigest({ pkpId, digest: hash }) };
}
