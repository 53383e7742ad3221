/**
 * What a relayer can have signed, and what not. The relayer is treated as an attacker: it sees every public id, chooses
 * every argument, and lacks only the keys of the accounts it attacks.
 */
import { expect } from "chai";
import { Interface, Transaction, Wallet, hexlify, keccak256, toBeHex } from "ethers";
import fc from "fast-check";
import { KeywrightError } from "../../protocol/errors";
import type { Credential, ExecutorRequest, SimpleWrite, TaggedCall, WriteArgument } from "../../protocol/executor";
import { decodedKeyIdOf, keyIdOf, packedAccountId, walletAddressOf } from "../../protocol/ids";
import type { AccountId, Address, ApiKey, DerivationPath, Hash32 } from "../../protocol/ids";
import { buildTypedData, type PrimaryType } from "../../protocol/typedData";
import { IAccountManager__factory } from "../../typechain-types";
import { Callers } from "../../executor/callers";
import type { IdentityVerifier } from "../../executor/identity";
import { Keyring } from "../../executor/keys/keyring";
import { writeFunctions } from "../../executor/writes/calldata";
import { GasGuard, type GasRules } from "../../executor/writes/gas";
import { WRITE_RULES } from "../../executor/writes/rules";
import { Writes, type WriteToAuthorize } from "../../executor/writes/writes";
import { SEED, count } from "../support/counts";
import { defined } from "../../protocol/defined";

const NAMESPACE = `0x${"5a".repeat(32)}` as Hash32;
const CONTRACT = "0x00000000000000000000000000000000000000C0" as Address;
const NOW = 1_800_000_000;
const DOMAIN = { name: "Keywright ChainSecured", version: "1", chainId: 31_337n } as const;
const ABI: Interface = IAccountManager__factory.createInterface();
/** Functions of the contract that no payer signs: those of the payer's own account, and the contract admin's. */
const NEVER_SIGNED = [
  "newChainSecuredAccount",
  "addApiPayer",
  "removeApiPayer",
  "setAdminApiPayer",
  "proposeAdmin",
  "transferAdmin",
  "acceptAdmin",
  "cancelAdminProposal",
  "cancelAdminApiPayer",
  "multicall",
  "tryMulticall",
];
const HOLDER = { issuer: "https://identity.example", subject: "holder" };
const TOKEN = "a verified token";

const keyring = new Keyring(Buffer.alloc(32, 7), NAMESPACE);
/** Tokens are tested elsewhere; here one is valid and authenticates HOLDER. */
const identities = {
  verify: (token: string) =>
    token === TOKEN ? Promise.resolve(HOLDER) : Promise.reject(new KeywrightError("invalid_identity_token", "no")),
} as unknown as IdentityVerifier;
const guard = (rules: Partial<GasRules> = {}, baseFee = 0n): GasGuard =>
  new GasGuard({ maxFeePerGasWei: 100n, maxTipPerGasWei: 100n, maxWeiPerHour: 10n ** 18n, ...rules }, () =>
    Promise.resolve(baseFee),
  );
const makeWrites = (overrides: Partial<ConstructorParameters<typeof Writes>[2]> = {}): Writes =>
  new Writes(keyring, new Callers(keyring, identities), {
    chainId: 31_337n,
    contractAddress: CONTRACT,
    domain: DOMAIN,
    gas: guard(),
    maxTopUpWei: 1_000n,
    nowSeconds: () => NOW,
    ...overrides,
  });
const writes = makeWrites();

const keyOf = (byte: number): ApiKey => Buffer.alloc(32, byte).toString("base64") as ApiKey;
const MINE = keyOf(1);
const THEIRS = keyOf(2);
const credential = (key: string): Credential => ({ type: "key", key });
const identity: Credential = { type: "identity", token: TOKEN };

/** A value for every type of the ABI, with `id` as argument 0. */
function argumentsFor(functionName: string, id: string): WriteArgument[] {
  const inputs = ABI.getFunction(functionName)?.inputs ?? [];
  return inputs.map(({ type }, index): WriteArgument => (index === 0 ? id : valueOf(type)));
}
function valueOf(type: string): WriteArgument {
  if (type.endsWith("[]")) return [];
  if (type === "bool") return false;
  if (type === "string") return "text";
  return type === "address" ? Wallet.createRandom().address : "3";
}
async function codeOf(request: WriteToAuthorize, by: Writes = writes): Promise<string> {
  try {
    await by.authorizeWrite(request);
    return "allowed";
  } catch (error) {
    if (error instanceof KeywrightError) return error.code;
    throw error;
  }
}
async function envelope(
  wallet: { address: string; signTypedData: Wallet["signTypedData"] },
  primaryType: PrimaryType = "ConvertAccount",
  issuedAt = NOW,
): Promise<{ typed_data: unknown; signature: string }> {
  const typedData = buildTypedData(primaryType, DOMAIN, wallet.address as Address, issuedAt);
  const { EIP712Domain: _domain, ...types } = typedData.types;
  return {
    typed_data: typedData,
    signature: await wallet.signTypedData(
      typedData.domain,
      types as Record<string, { name: string; type: string }[]>,
      typedData.message,
    ),
  };
}

describe("authorizeWrite", () => {
  it("has a rule or a reason for every write function of the contract", () => {
    const known = new Set([...Object.keys(WRITE_RULES), ...NEVER_SIGNED]);
    expect(writeFunctions().filter((name) => !known.has(name))).to.deep.equal([]);
    expect(Object.keys(WRITE_RULES).filter((name) => !writeFunctions().includes(name))).to.deep.equal([]);
  });

  const ordinary = Object.keys(WRITE_RULES).filter(
    (name) => !["newAccount", "convertToChainSecuredAccount", "registerWalletDerivation"].includes(name),
  );
  for (const functionName of ordinary) {
    it(`allows ${functionName} for the presented key's account, under either hash, and for no other`, async () => {
      const about = (id: string, who: Credential): Promise<string> =>
        codeOf({ credential: who, write: { functionName, args: argumentsFor(functionName, id) } });
      expect(await about(keyIdOf(MINE), credential(MINE))).to.equal("allowed");
      expect(await about(decodedKeyIdOf(MINE), credential(MINE))).to.equal("allowed");
      expect(await about(keyIdOf(THEIRS), credential(MINE))).to.equal("not_authorized");
      expect(await about(packedAccountId(walletAddressOf(MINE)), credential(MINE))).to.equal("not_authorized");
      expect(await about("0", credential(MINE))).to.equal("not_authorized");
      const owner = keyring.ownerWallet(HOLDER.issuer, HOLDER.subject);
      expect(await about(packedAccountId(owner), identity)).to.equal("allowed");
      expect(await about(keyIdOf(MINE), identity)).to.equal("not_authorized");
      expect(await about(packedAccountId(owner), { type: "identity", token: "forged" })).to.equal(
        "invalid_identity_token",
      );
    });
  }

  it("gives a relayer without the account's key no calldata that names the account, for any write", async () => {
    const victim = keyIdOf(THEIRS);
    const argument = fc.oneof(
      fc.constant(victim),
      fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => hexlify(bytes)),
      fc.string(),
      fc.nat().map(String),
    );
    const anyWrite = fc.record({
      functionName: fc.oneof(fc.constantFrom(...writeFunctions(), "multicall"), fc.string()),
      args: fc.array(argument, { maxLength: 4 }),
    });
    const subject = fc.constantFrom(
      victim,
      keyIdOf(MINE),
      packedAccountId(keyring.ownerWallet(HOLDER.issuer, HOLDER.subject)),
    );
    const wellFormed = fc
      .tuple(fc.constantFrom(...writeFunctions()), subject)
      .map(([functionName, id]): SimpleWrite => ({ functionName, args: argumentsFor(functionName, id) }));
    let allowed = 0;
    const simple = fc.oneof(wellFormed, anyWrite);
    const batch = fc.record({
      functionName: fc.constant("multicall" as const),
      calls: fc.array(simple, { minLength: 1, maxLength: 3 }),
    });
    const convert = await envelope(Wallet.createRandom());
    await fc.assert(
      fc.asyncProperty(fc.oneof(simple, batch), fc.constantFrom(credential(MINE), identity), async (write, who) => {
        const answer = await writes.authorizeWrite({ credential: who, write, convert }).catch((error: unknown) => {
          if (error instanceof KeywrightError) return undefined;
          throw error;
        });
        if (answer !== undefined) allowed++;
        if (answer !== undefined) for (const id of subjectsOf(answer.calldata)) expect(id).to.not.equal(victim);
      }),
      { seed: SEED, numRuns: count(300, 10_000) },
    );
    expect(allowed, "the histories must also hold writes that are allowed").to.be.greaterThan(10);
  });

  it("signs no write outside an account's own state", async () => {
    for (const functionName of [
      ...NEVER_SIGNED,
      "constructor",
      "toString",
      "__proto__",
      "addGroup(uint256,string,string,uint256[],address[])",
      "",
    ]) {
      expect(
        await codeOf({ credential: credential(MINE), write: { functionName, args: [keyIdOf(MINE)] } }),
        functionName,
      ).to.equal("not_authorized");
    }
  });

  it("creates a new account only as managed, and only with the id and owner of the presented key", async () => {
    const attempt = (id: string, managed: boolean, owner: string, who = credential(MINE)): Promise<string> =>
      codeOf({ credential: who, write: { functionName: "newAccount", args: [id, managed, "", "", owner] } });
    const wallet = walletAddressOf(MINE);
    expect(await attempt(keyIdOf(MINE), true, wallet)).to.equal("allowed");
    expect(await attempt(keyIdOf(MINE), false, wallet)).to.equal("not_authorized");
    expect(await attempt(keyIdOf(THEIRS), true, wallet)).to.equal("not_authorized");
    expect(await attempt(decodedKeyIdOf(MINE), true, wallet)).to.equal("not_authorized");
    expect(await attempt(packedAccountId(wallet), true, wallet)).to.equal("not_authorized");
    expect(await attempt(keyIdOf(MINE), true, walletAddressOf(THEIRS))).to.equal("not_authorized");
    const owner = keyring.ownerWallet(HOLDER.issuer, HOLDER.subject);
    expect(await attempt(packedAccountId(owner), true, owner, identity)).to.equal("allowed");
    expect(await attempt(packedAccountId(owner), true, wallet, identity)).to.equal("not_authorized");
  });

  it("converts only with the new owner's fresh ConvertAccount signature, and never for an identity", async () => {
    const newOwner = Wallet.createRandom();
    const write = { functionName: "convertToChainSecuredAccount", args: [keyIdOf(MINE), newOwner.address] };
    const attempt = (convert?: { typed_data: unknown; signature: unknown }, who = credential(MINE)): Promise<string> =>
      codeOf({ credential: who, write, ...defined({ convert }) });
    expect(await attempt(await envelope(newOwner))).to.equal("allowed");
    expect(await attempt()).to.equal("invalid_value");
    expect(await attempt(await envelope(Wallet.createRandom()))).to.equal("not_authorized");
    expect(await attempt(await envelope(newOwner, "CreateWallet"))).to.equal("typed_data_wrong_primary_type");
    expect(await attempt(await envelope(newOwner, "ConvertAccount", NOW - 301))).to.equal("typed_data_expired");
    const { typed_data } = await envelope(newOwner);
    expect(await attempt({ typed_data, signature: (await envelope(Wallet.createRandom())).signature })).to.equal(
      "signature_mismatch",
    );
    expect(await attempt(await envelope(newOwner), identity)).to.equal("owner_only");
    expect(await attempt(await envelope(newOwner), credential(THEIRS))).to.equal("not_authorized");
  });

  it("registers a wallet only with the address its path leads to", async () => {
    const id = keyIdOf(MINE);
    const { path, address } = keyring.mintPkp(id as Hash32 as AccountId);
    const attempt = (wallet: string, at: string): Promise<string> =>
      codeOf({
        credential: credential(MINE),
        write: { functionName: "registerWalletDerivation", args: [id, wallet, at, "", ""] },
      });
    expect(await attempt(address, path)).to.equal("allowed");
    expect(await attempt(Wallet.createRandom().address, path)).to.equal("invalid_value");
    expect(await attempt(address, keyring.mintPkp(id as Hash32 as AccountId).path)).to.equal("invalid_value");
    expect(await attempt(address, `0x03${path.slice(4)}`)).to.equal("unknown_path_kind");
    const usage = keyring.mintUsageKey(id as Hash32 as AccountId, () => undefined);
    expect(
      await attempt(keyring.addressAt(id as Hash32 as AccountId, usage.path as DerivationPath), usage.path),
    ).to.equal("allowed");
    expect(await attempt(address, usage.path)).to.equal("invalid_value");
  });

  it("applies the same rules to every call of a multicall, one level deep", async () => {
    const mine: SimpleWrite = { functionName: "removeGroup", args: [keyIdOf(MINE), "1"] };
    const theirs: SimpleWrite = { functionName: "removeGroup", args: [keyIdOf(THEIRS), "1"] };
    const batch = (...calls: SimpleWrite[]): Promise<string> =>
      codeOf({ credential: credential(MINE), write: { functionName: "multicall", calls } });
    expect(await batch(mine, mine)).to.equal("allowed");
    expect(await batch(mine, theirs)).to.equal("not_authorized");
    expect(await batch(mine, { functionName: "multicall", args: [[]] })).to.equal("not_authorized");
    expect(await batch(mine, { functionName: "newChainSecuredAccount", args: ["", ""] })).to.equal("not_authorized");
  });

  it("reports arguments that do not match the function", async () => {
    for (const args of [
      [],
      [keyIdOf(MINE)],
      [keyIdOf(MINE), "not a number"],
      [keyIdOf(MINE), "1", "2"],
      [keyIdOf(MINE), "-1"],
      [keyIdOf(MINE), String(2n ** 256n)],
    ]) {
      expect(await codeOf({ credential: credential(MINE), write: { functionName: "removeGroup", args } })).to.equal(
        "invalid_value",
      );
    }
  });
});

describe("a payer's signature", () => {
  const fees = { maxFeePerGas: "100", maxPriorityFeePerGas: "10" };
  type Asked = Partial<Omit<ExecutorRequest<"signAsPayer">, "calls"> & TaggedCall>;
  const signed = ({ calldata = "0x", tag = `0x${"00".repeat(32)}`, ...request }: Asked, by = writes): Transaction => {
    const full = { payer: 1, calls: [{ calldata, tag }], nonce: 0, gasLimit: "100000", ...fees, ...request };
    return Transaction.from(by.signAsPayer(full).rawTransaction);
  };
  const authorized = (by = writes): Promise<{ calldata: string; tag: string }> =>
    by.authorizeWrite({
      credential: credential(MINE),
      write: { functionName: "removeGroup", args: [keyIdOf(MINE), "1"] },
    });
  const refusal = (act: () => unknown): string => {
    try {
      act();
      return "allowed";
    } catch (error) {
      return error instanceof KeywrightError ? error.code : String(error);
    }
  };

  it("is a call to the contract of value 0 on the configured chain, by the requested payer", async () => {
    const { calldata, tag } = await authorized();
    const { payers, adminPayer } = writes.payers({ count: 3 });
    const transaction = signed({ calldata, tag, payer: 3, nonce: 9 });
    expect(transaction.toJSON()).to.include({
      to: CONTRACT,
      value: "0",
      data: calldata,
      nonce: 9,
      chainId: "31337",
      type: 2,
      maxFeePerGas: "100",
    });
    expect(transaction.from).to.equal(payers[2]);
    expect(new Set([...payers, adminPayer]).size).to.equal(4);
    expect(
      writes.signAsPayer({ payer: 3, calls: [{ calldata, tag }], nonce: 9, gasLimit: "100000", ...fees }).hash,
    ).to.equal(transaction.hash);
  });

  it("for several calls is one, and requires each call's own tag", async () => {
    const calls = await Promise.all(
      ["1", "2", "3"].map((group) =>
        writes.authorizeWrite({
          credential: credential(MINE),
          write: { functionName: "removeGroup", args: [keyIdOf(MINE), group] },
        }),
      ),
    );
    const asked = { payer: 1, nonce: 0, gasLimit: "100000", ...fees };
    const transaction = Transaction.from(writes.signAsPayer({ ...asked, calls }).rawTransaction);
    expect(transaction.data).to.equal(ABI.encodeFunctionData("tryMulticall", [calls.map(({ calldata }) => calldata)]));
    const swapped = calls.map(({ calldata }, index) => ({ calldata, tag: calls[(index + 1) % 3]?.tag ?? "" }));
    expect(refusal(() => writes.signAsPayer({ ...asked, calls: swapped }))).to.equal("not_authorized");
    expect(
      refusal(() =>
        writes.signAsPayer({
          ...asked,
          calls: [...calls.slice(0, 2), { calldata: "0x1234", tag: calls[2]?.tag ?? "" }],
        }),
      ),
    ).to.equal("not_authorized");
  });

  it("is refused to one write of several without affecting the others", async () => {
    const write = { functionName: "removeGroup", args: [keyIdOf(MINE), "1"] };
    const answer = await writes.authorizeWrites({
      writes: [credential(MINE), credential(THEIRS), credential(MINE)].map((who) => ({ credential: who, write })),
    });
    expect(answer.writes.map((each) => ("refused" in each ? each.refused.code : "allowed"))).to.deep.equal([
      "allowed",
      "not_authorized",
      "allowed",
    ]);
  });

  it("is given again for the same tag with another nonce or fee, without the credential", async () => {
    const { calldata, tag } = await authorized();
    expect(signed({ calldata, tag, nonce: 1, maxFeePerGas: "50" }).data).to.equal(
      signed({ calldata, tag, nonce: 2 }).data,
    );
  });

  it("requires the calldata's own tag: not for a changed byte, another chain, contract or root key", async () => {
    const { calldata, tag } = await authorized();
    expect(refusal(() => signed({ calldata }))).to.equal("not_authorized");
    fc.assert(
      fc.property(fc.nat(calldata.length / 2 - 2), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const bytes = Buffer.from(calldata.slice(2), "hex");
        bytes[at] = (bytes[at] ?? 0) ^ flip;
        expect(refusal(() => signed({ calldata: `0x${bytes.toString("hex")}`, tag }))).to.equal("not_authorized");
      }),
      { seed: SEED, numRuns: count(50, 1_000) },
    );
    for (const other of [
      makeWrites({ chainId: 1n }),
      makeWrites({ contractAddress: "0x00000000000000000000000000000000000000C1" as Address }),
    ]) {
      expect((await authorized(other)).tag).to.not.equal(tag);
      expect(refusal(() => signed({ calldata, tag }, other))).to.equal("not_authorized");
    }
  });

  it("is refused for a tag of the previous day, whoever stored it", async () => {
    const { calldata, tag } = await authorized();
    const periodStart = NOW - (NOW % 43_200);
    const at = (nowSeconds: number): string =>
      refusal(() => signed({ calldata, tag }, makeWrites({ nowSeconds: () => nowSeconds })));
    expect([at(NOW), at(periodStart + 86_399), at(periodStart + 86_400), at(periodStart - 1)]).to.deep.equal([
      "allowed",
      "allowed",
      "not_authorized",
      "not_authorized",
    ]);
  });

  it("fills a nonce with a transaction to itself that transfers nothing", () => {
    const transaction = Transaction.from(writes.signNoop({ payer: 2, nonce: 4, ...fees }).rawTransaction);
    expect(transaction.to).to.equal(transaction.from);
    expect([transaction.value, transaction.data, transaction.gasLimit]).to.deep.equal([0n, "0x", 21_000n]);
  });

  it("tops up only the service's payers, from the admin payer, up to the cap and not a wei above", () => {
    const topUp = (amountWei: string, toPayer = 2): Transaction =>
      Transaction.from(writes.signTopUp({ toPayer, amountWei, nonce: 0, ...fees }).rawTransaction);
    const { payers, adminPayer } = writes.payers({ count: 2 });
    expect([topUp("1000").from, topUp("1000").to, topUp("1000").value]).to.deep.equal([adminPayer, payers[1], 1_000n]);
    expect(refusal(() => topUp("1001"))).to.equal("invalid_value");
    expect(refusal(() => topUp("1", 1_025))).to.equal("invalid_value");
  });

  it("never exceeds the caps on fee and gas, nor signs for a payer number out of range", async () => {
    const { calldata, tag } = await authorized();
    expect(refusal(() => signed({ calldata, tag, maxFeePerGas: "101" }))).to.equal("invalid_value");
    expect(refusal(() => signed({ calldata, tag, maxFeePerGas: "9", maxPriorityFeePerGas: "10" }))).to.equal(
      "invalid_value",
    );
    expect(refusal(() => signed({ calldata, tag, gasLimit: "30000001" }))).to.equal("invalid_value");
    expect(refusal(() => signed({ calldata, tag, payer: 1_025 }))).to.equal("invalid_value");
  });
});

/** Every argument 0 in calldata, including those inside a multicall. */
function subjectsOf(calldata: string): string[] {
  const batch = new Interface(["function multicall(bytes[] data)"]);
  if (calldata.startsWith(batch.getFunction("multicall")?.selector ?? "")) {
    return [...(batch.decodeFunctionData("multicall", calldata)[0] as string[])].flatMap(subjectsOf);
  }
  const args = ABI.parseTransaction({ data: calldata })?.args;
  return args === undefined || args.length === 0
    ? []
    : [typeof args[0] === "bigint" ? toBeHex(args[0], 32) : keccak256(Buffer.from(String(args[0])))];
}
