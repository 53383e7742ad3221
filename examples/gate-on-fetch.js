// Signs only while a value at a URL allows it. Whoever can change that value decides whether the action signs, so
// choose the source with care.
async function main({ pkpId, url, atLeast, message }) {
  const answer = await fetch(url, { headers: { accept: "application/json" }, signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  const { value } = await answer.json();
  console.log(`the value is ${value}, at least ${atLeast} is wanted`);
  if (!(typeof value === "number" && value >= atLeast)) return { signed: false, value };
  return { signed: true, value, signature: await Actions.signMessage({ pkpId, message }) };
}
