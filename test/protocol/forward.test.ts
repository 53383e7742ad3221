/** The checks of a forward request before its gas is paid: every reason to refuse one. */
import { expect } from "chai";
import { type Interface, Signature, Wallet, toBeHex } from "ethers";
import { KeywrightError } from "../../protocol/errors";
import {
  FORWARD_LIMITS,
  FORWARD_TYPES,
  checkForward,
  decodeForward,
  encodeForward,
  forwarderCalldata,
} from "../../protocol/forward";
import type { ForwardDomain, ForwardRequest, Forwarded, SignedForwardRequest } from "../../protocol/forward";
import { packedAccountId, type Address } from "../../protocol/ids";
import { ERC2771Forwarder__factory, AccountManager__factory } from "../../typechain-types";
import { FORWARD_DOMAIN as DOMAIN, FORWARDER } from "../support/forwards";

const CONTRACT = "0x00000000000000000000000000000000000000C0" as Address;
const NOW = 1_800_000_000;
const ABI: Interface = AccountManager__factory.createInterface();
const owner = Wallet.createRandom();
const FROM = owner.address as Address;
const ID = packedAccountId(FROM);
const call = (name: string, args: unknown[]): string => ABI.encodeFunctionData(name, args);
const RENAME = call("updateAccountMetadata", [ID, "name", ""]);
const FREEZE = call("setAccountFrozen", [ID, true]);
const BAD_ADDRESS = call("transferOwnership", [ID, FROM]).replace(/0{24}(?=[0-9a-f]{40}$)/, "f".repeat(24));

const request = (overrides: Partial<ForwardRequest> = {}): ForwardRequest => ({
  from: FROM,
  to: CONTRACT,
  value: "0",
  gas: "200000",
  nonce: "0",
  deadline: String(NOW + 60),
  data: RENAME,
  ...overrides,
});

async function signed(
  overrides: Partial<ForwardRequest> = {},
  domain: ForwardDomain = DOMAIN,
  signer = owner,
): Promise<SignedForwardRequest> {
  const unsigned = request(overrides);
  return { ...unsigned, signature: await signer.signTypedData({ ...domain }, FORWARD_TYPES, unsigned) };
}

const check = (given: SignedForwardRequest): Forwarded =>
  checkForward(given, { contractAddress: CONTRACT, domain: DOMAIN, nowSeconds: NOW });
function codeOf(given: SignedForwardRequest): string {
  try {
    check(given);
    return "accepted";
  } catch (error) {
    return error instanceof KeywrightError ? error.code : String(error);
  }
}

describe("a forward request", () => {
  it("of an owner's call is accepted and names the account it is about", async () => {
    const forwarded = check(await signed());
    expect(forwarded).to.include({ accountId: ID, createsAccount: false });
    expect(forwarded.calls.map(({ functionName }) => functionName)).to.deep.equal(["updateAccountMetadata"]);
  });

  it("may create an account and populate it in one multicall", async () => {
    const inner = [call("newChainSecuredAccount", ["mine", ""]), call("addGroup", [ID, "g", "", [], []])];
    expect(check(await signed({ data: call("multicall", [inner]) }))).to.include({
      accountId: ID,
      createsAccount: true,
    });
  });

  const OTHER_CHAIN = { ...DOMAIN, chainId: 1n };
  const OTHER_FORWARDER = { ...DOMAIN, verifyingContract: CONTRACT };
  const cases: Record<string, [string, () => Promise<SignedForwardRequest>]> = {
    "for another contract": ["invalid_value", () => signed({ to: FORWARDER })],
    "that carries coin": ["invalid_value", () => signed({ value: "1" })],
    "with more gas than is ever paid for": ["invalid_value", () => signed({ gas: String(FORWARD_LIMITS.gas + 1n) })],
    "whose deadline is past": ["request_expired", () => signed({ deadline: String(NOW - 1) })],
    "whose deadline is years ahead": ["invalid_value", () => signed({ deadline: String(NOW + 400 * 86_400) })],
    "signed for another chain": ["signature_mismatch", () => signed({}, OTHER_CHAIN)],
    "signed for another forwarder": ["signature_mismatch", () => signed({}, OTHER_FORWARDER)],
    "signed by a stranger": ["signature_mismatch", () => signed({}, DOMAIN, Wallet.createRandom())],
    "with another nonce than was signed": ["signature_mismatch", async () => ({ ...(await signed()), nonce: "1" })],
    "with other data than was signed": [
      "signature_mismatch",
      async () => ({ ...(await signed()), data: call("updateAccountMetadata", [ID, "evil", ""]) }),
    ],
    "with half a signature": ["signature_malformed", async () => ({ ...(await signed()), signature: "0x1234" })],
    "with data that is no call of the contract": ["invalid_value", () => signed({ data: "0x12345678" })],
    "with no data": ["invalid_value", () => signed({ data: "0x" })],
    "that holds a batch of a batch": [
      "not_authorized",
      () => signed({ data: call("multicall", [[call("multicall", [[RENAME]])]]) }),
    ],
    "that holds a batch whose calls may fail alone": [
      "not_authorized",
      () => signed({ data: call("tryMulticall", [[RENAME]]) }),
    ],
    "of a payer's or the admin's call": ["not_authorized", () => signed({ data: call("addApiPayer", [FROM]) })],
    "that makes a managed account": [
      "not_authorized",
      () => signed({ data: call("newAccount", [ID, true, "", "", FROM]) }),
    ],
    "about two accounts": [
      "invalid_value",
      () => signed({ data: call("multicall", [[RENAME, call("updateAccountMetadata", [7, "", ""])]]) }),
    ],
    "that makes an account and changes another": [
      "invalid_value",
      () =>
        signed({
          data: call("multicall", [
            [call("newChainSecuredAccount", ["", ""]), call("updateAccountMetadata", [7, "", ""])],
          ]),
        }),
    ],
    "with an address that does not fit": ["invalid_value", () => signed({ data: BAD_ADDRESS })],
    "with an address that does not fit in a multicall": [
      "invalid_value",
      () => signed({ data: call("multicall", [[BAD_ADDRESS]]) }),
    ],
    "with a flag that is neither 0 nor 1": ["invalid_value", () => signed({ data: `${FREEZE.slice(0, -1)}7` })],
    "with bytes behind its arguments": ["invalid_value", () => signed({ data: `${FREEZE}00` })],
    "with text that is not UTF-8": ["invalid_value", () => signed({ data: RENAME.replace("6e616d65", "ffffffff") })],
    "with a multicall that ends early": [
      "invalid_value",
      () => signed({ data: call("multicall", [[RENAME]]).replace(/(?<=0{63}1)[0-9a-f]{64}/, "f".repeat(64)) }),
    ],
    "with an empty multicall": ["invalid_value", () => signed({ data: call("multicall", [[]]) })],
    "that holds a forward request": [
      "invalid_value",
      async () =>
        signed({ data: ERC2771Forwarder__factory.createInterface().encodeFunctionData("execute", [await signed()]) }),
    ],
  };
  for (const [what, [code, make]] of Object.entries(cases))
    it(`${what} is refused: ${code}`, async () => expect(codeOf(await make())).to.equal(code));

  it("with the other s of its signature is refused", async () => {
    const good = await signed();
    const { r, s, v } = Signature.from(good.signature);
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
    const other = `${r}${toBeHex(order - BigInt(s), 32).slice(2)}${v === 27 ? "1c" : "1b"}`;
    expect(codeOf({ ...good, signature: other })).to.equal("signature_malformed");
  });

  it("survives serialisation, alone and with others", async () => {
    const [one, two] = [await signed(), await signed({ nonce: "1" })];
    expect(decodeForward(encodeForward(one))).to.deep.equal(one);
    const forwarder = ERC2771Forwarder__factory.createInterface();
    expect(forwarder.parseTransaction({ data: forwarderCalldata([one], CONTRACT) })?.name).to.equal("execute");
    expect(forwarder.parseTransaction({ data: forwarderCalldata([one, two], CONTRACT) })?.name).to.equal(
      "executeBatch",
    );
    expect(() => decodeForward("0x1234")).to.throw(KeywrightError);
  });
});
