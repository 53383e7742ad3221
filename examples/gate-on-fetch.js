// Signs only while a value somewhere else allows it. Who can change the value decides what is signed, so choose the source with care.
async function main({ pkpId, url, atLeast, message }) {
  const answer = await fetch(url, { headers: { accept: "application/json" }, signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  const { value } = await answer.json();
  console.log(`the value is ${value}, at least ${atLeast} is wanted`);
  if (!(typeof value === "number" && value >= atLeast)) return { signed: false, value };
  return { signed: true, value, signature: await Actions.signMessage({ pkpId, message }) };
}
