/**
 * Forward requests in the keyholder: what a payer signs for a compromised relayer, and what an identity's wallet signs
 * for the bearer of its token.
 */
import { expect } from "chai";
import { Transaction, Wallet } from "ethers";
import { Forwards } from "../../executor/writes/forwards";
import { KeywrightError } from "../../protocol/errors";
import {
  FORWARD_TYPES,
  decodeForward,
  encodeForward,
  forwarderCalldata,
  type SignedForwardRequest,
} from "../../protocol/forward";
import { packedAccountId, type Address } from "../../protocol/ids";
import { FORWARD_DOMAIN as DOMAIN, FORWARDER } from "../support/forwards";
import { ABI, CONTRACT, HOLDER, NOW, TOKEN, callers, keyring, writes } from "../support/writes";

const forwards = new Forwards(keyring, callers, writes, {
  contractAddress: CONTRACT,
  domain: () => Promise.resolve(DOMAIN),
  nowSeconds: () => NOW,
});
const OFFER = { payer: 1, nonce: 3, gasLimit: "500000", maxFeePerGas: "10", maxPriorityFeePerGas: "1" };

async function requestBy(owner: Wallet, overrides: Partial<SignedForwardRequest> = {}): Promise<SignedForwardRequest> {
  const data = ABI.encodeFunctionData("updateAccountMetadata", [packedAccountId(owner.address as Address), "name", ""]);
  const unsigned = {
    from: owner.address as Address,
    to: CONTRACT,
    value: "0",
    gas: "90000",
    nonce: "0",
    deadline: String(NOW + 9),
    data,
    ...overrides,
  };
  return { ...unsigned, signature: await owner.signTypedData({ ...DOMAIN }, FORWARD_TYPES, unsigned) };
}
const refusalOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "accepted",
    (error: unknown) => (error instanceof KeywrightError ? error.code : String(error)),
  );

describe("forward requests in the keyholder", () => {
  const owner = new Wallet(`0x${"11".repeat(32)}`);

  it("are sent to the forwarder only, by the requested payer, without value", async () => {
    const request = await requestBy(owner);
    const { rawTransaction } = await forwards.signForwards({ ...OFFER, forwards: [encodeForward(request)] });
    const transaction = Transaction.from(rawTransaction);
    expect([transaction.to, transaction.value, transaction.from]).to.deep.equal([
      FORWARDER,
      0n,
      keyring.payerAddress(1),
    ]);
    expect(transaction.data).to.equal(forwarderCalldata([request], keyring.payerAddress(1)));
  });

  it("are combined in one transaction", async () => {
    const requests = [await requestBy(owner), await requestBy(new Wallet(`0x${"12".repeat(32)}`))];
    const { rawTransaction } = await forwards.signForwards({ ...OFFER, forwards: requests.map(encodeForward) });
    expect(Transaction.from(rawTransaction).data).to.equal(forwarderCalldata(requests, keyring.payerAddress(1)));
  });

  it("are not signed when one of them is not what its owner signed, or is not a call of an owner", async () => {
    const good = await requestBy(owner);
    const altered = {
      ...good,
      data: ABI.encodeFunctionData("updateAccountMetadata", [packedAccountId(owner.address as Address), "evil", ""]),
    };
    expect(
      await refusalOf(forwards.signForwards({ ...OFFER, forwards: [encodeForward(good), encodeForward(altered)] })),
    ).to.equal("signature_mismatch");
    const payers = await requestBy(owner, { data: ABI.encodeFunctionData("addApiPayer", [owner.address]) });
    expect(await refusalOf(forwards.signForwards({ ...OFFER, forwards: [encodeForward(payers)] }))).to.equal(
      "not_authorized",
    );
    const elsewhere = await requestBy(owner, { to: FORWARDER });
    expect(await refusalOf(forwards.signForwards({ ...OFFER, forwards: [encodeForward(elsewhere)] }))).to.equal(
      "invalid_value",
    );
    expect(await refusalOf(forwards.signForwards({ ...OFFER, forwards: ["0x1234"] }))).to.equal("invalid_value");
  });

  it("of an identity are signed by its wallet, for its token only", async () => {
    const wallet = keyring.ownerWallet(HOLDER.issuer, HOLDER.subject);
    const write = { functionName: "updateAccountMetadata", args: [packedAccountId(wallet), "renamed", ""] };
    const asked = { write, gas: "100000", forwarderNonce: "4", deadline: String(NOW + 60) };
    const request = decodeForward((await forwards.signOfIdentity({ ...asked, token: TOKEN })).forward);
    expect(request).to.include({ from: wallet, to: CONTRACT, value: "0", nonce: "4" });
    expect(await refusalOf(forwards.signForwards({ ...OFFER, forwards: [encodeForward(request)] }))).to.equal(
      "accepted",
    );
    expect(await refusalOf(forwards.signOfIdentity({ ...asked, token: "bad" }))).to.equal("invalid_identity_token");
  });

  it("of an identity are for calls of an owner only", async () => {
    const write = { functionName: "proposeAdmin", args: [CONTRACT] };
    const asked = { write, gas: "100000", forwarderNonce: "0", deadline: String(NOW + 60), token: TOKEN };
    expect(await refusalOf(forwards.signOfIdentity(asked))).to.equal("not_authorized");
  });
});
