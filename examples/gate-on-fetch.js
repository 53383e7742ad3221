// Signs only while a fetched value allows it. SOURCE (a URL) and AT_LEAST are defined in the text put before this file:
// they are part of its CID, and no caller chooses them. Whoever can change the value decides whether the action signs,
// so choose the source with care.
async function main({ pkpId, message }) {
  const answer = await fetch(SOURCE, { headers: { accept: "application/json" }, signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw new Error(`${SOURCE} answered ${answer.status}`);
  const { value } = await answer.json();
  console.log(`the value is ${value}, at least ${AT_LEAST} is wanted`);
  if (!(typeof value === "number" && value >= AT_LEAST)) return { signed: false, value };
  return { signed: true, value, signature: await Actions.signMessage({ pkpId, message }) };
}
