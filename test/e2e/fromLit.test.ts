/** Actions in the old form, unchanged, through `POST /core/v1/lit_action`: what they signed is the PKP's. */
import { expect } from "chai";
import { computeAddress, getBytes, id, recoverAddress, verifyMessage } from "ethers";
import { makeAccount, makeGroup } from "../support/journey";
import { useStack } from "../support/stack";

interface Signature {
  readonly r: string;
  readonly s: string;
  readonly recid: number;
  readonly signature: string;
}
interface Answer {
  readonly response: unknown;
  readonly has_error: boolean;
  readonly error?: { readonly message: string };
  readonly signatures?: Readonly<Record<string, Signature>>;
}

const SIGN = `(async () => {
  const sigShare = await Lit.Actions.signEcdsa({ toSign, publicKey, sigName });
  LitActions.setResponse({ response: JSON.stringify({ done: true }) });
})();`;
const COMBINE = `const go = async () => {
  const made = JSON.parse(await Lit.Actions.signAndCombineEcdsa({ toSign, publicKey, sigName }));
  const joined = ethers.utils.joinSignature({ r: "0x" + made.r.substring(2), s: "0x" + made.s, v: made.v });
  Lit.Actions.setResponse({ response: joined });
};
go();`;
const PERSONAL = `(async () => {
  await LitActions.ethPersonalSignMessageEcdsa({ message: "hello", publicKey, sigName });
})();`;

describe("actions in Lit's old form", function () {
  this.timeout(60_000);
  const stack = useStack();

  it("sign with a PKP named by its public key, and answer in the old shapes", async () => {
    const { client, apiKey } = await makeAccount(stack().baseUrl);
    const { pkp, group } = await makeGroup(client, SIGN);
    for (const code of [COMBINE, PERSONAL])
      await client.addActionToGroup({ group_id: group, action_ipfs_cid: await client.getActionIpfsId(code) });
    const { keys } = await client.publicKeys({ pkp_id: pkp });
    const publicKey = keys.find(({ curve }) => curve === "secp256k1")?.public_key ?? "";
    expect(computeAddress(publicKey)).to.equal(pkp);
    const digest = id("hello");
    const run = async (code: string, named = publicKey): Promise<Answer> => {
      const js_params = { toSign: [...getBytes(digest)], publicKey: named, sigName: "sig1" };
      const answer = await fetch(`${stack().baseUrl}/core/v1/lit_action`, {
        method: "POST",
        headers: { "x-api-key": apiKey, "content-type": "application/json" },
        body: JSON.stringify({ code, js_params }),
      });
      return (await answer.json()) as Answer;
    };
    const signed = await run(SIGN);
    expect(signed.response, JSON.stringify(signed)).to.deep.equal({ done: true });
    const { r = "", s = "", recid = 0, signature = "" } = signed.signatures?.["sig1"] ?? {};
    expect(recoverAddress(digest, signature)).to.equal(pkp);
    expect(recoverAddress(digest, { r: `0x${r}`, s: `0x${s}`, yParity: recid as 0 | 1 })).to.equal(pkp);
    expect(recoverAddress(digest, String((await run(COMBINE, publicKey.slice(2))).response))).to.equal(pkp);
    const personal = await run(PERSONAL);
    expect(verifyMessage("hello", personal.signatures?.["sig1"]?.signature ?? "")).to.equal(pkp);
    const foreign = await run(SIGN, `0x02${"11".repeat(32)}`);
    expect([foreign.has_error, foreign.signatures]).to.deep.equal([true, undefined]);
  });
});
