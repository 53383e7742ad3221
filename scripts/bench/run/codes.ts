/** The two actions that every contender runs. */
export const HELLO = `async function main({ name }) { return "hello " + name; }`;
export const SIGN = `async function main({ pkpId, message }) { return Actions.signMessage({ pkpId, message }); }`;
/** The same signature made by a library inside the sandbox, for contenders without a host that signs. */
export const SIGN_IN_GUEST = `async function main({ secret, message }) {
  return new ethers.Wallet(secret).signMessage(message);
}`;
export const SECRET = `0x${"11".repeat(32)}`;
