/** Statements about public keys: their work is shared with everything else on the keyholder's loop. */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import { PublicKeys } from "../../../executor/access/publicKeys";
import { Keyring } from "../../../executor/keys/keyring";
import { StatementKey } from "../../../executor/keys/statementKey";
import { inTurn } from "../../../executor/loop";
import type { AccountId, Hash32 } from "../../../protocol/ids";

const MANY = 100;

describe("statements about public keys", () => {
  const keyring = new Keyring(randomBytes(32), `0x${"5a".repeat(32)}` as Hash32);
  const publicKeys = new PublicKeys(keyring, `0x${"5a".repeat(32)}` as Hash32, new StatementKey(keyring));
  const accountId = `0x${"a1".repeat(32)}` as AccountId;
  const { path, address } = keyring.mintPkp(accountId);
  const request = { accountId, pkpId: address, derivationPath: path };

  it("keep another account's work waiting for one of them, however many are asked for", async () => {
    let stated = 0;
    const all = Array.from({ length: MANY }, async () => {
      await publicKeys.state(request);
      stated += 1;
    });
    const statedBefore = await inTurn("another account", () => stated);
    expect(statedBefore).to.be.at.most(2);
    await Promise.all(all);
    expect(stated).to.equal(MANY);
  });

  it("are not made for a client that has gone", async () => {
    const gone = AbortSignal.abort(new Error("gone"));
    const end = await publicKeys.state(request, gone).then(
      () => "stated",
      (error: Error) => error.message,
    );
    expect(end).to.equal("gone");
  });
});
