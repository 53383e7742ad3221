// Signs a release when the build system calls a hook. As a trigger:
//   { "hook": { "verification": "hmac", "respond": true }, "params": { "pkpId": "0x…", "repository": "acme/app" } }
// The build system sends { "tag": "v1.2.3", "sha256": "…" }; it cannot change `pkpId` or `repository`. A key that runs
// this action directly chooses them: let no other key than the trigger's run it.
async function main({ pkpId, repository, tag, sha256 }) {
  if (!/^v\d+\.\d+\.\d+$/.test(tag)) throw new Error("tag must be a version, such as v1.2.3");
  if (!/^[0-9a-f]{64}$/.test(sha256)) throw new Error("sha256 must be 64 hex digits");
  const message = `${repository}@${tag} sha256:${sha256}`;
  return { message, signature: await Actions.signMessage({ pkpId, message }) };
}
