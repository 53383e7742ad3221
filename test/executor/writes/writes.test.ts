/**
 * What a relayer can have signed, and what not. The relayer is treated as an attacker: it sees every public id, chooses
 * every argument, and lacks only the keys of the accounts it attacks.
 */
import { expect } from "chai";
import { Interface, Wallet, hexlify, keccak256, toBeHex } from "ethers";
import fc from "fast-check";
import { defined } from "../../../protocol/defined";
import { KeywrightError } from "../../../protocol/errors";
import type { Credential, SimpleWrite, WriteArgument } from "../../../protocol/executor";
import { decodedKeyIdOf, keyIdOf, packedAccountId, walletAddressOf } from "../../../protocol/ids";
import type { AccountId, DerivationPath, Hash32 } from "../../../protocol/ids";
import { writeFunctions } from "../../../executor/writes/calldata";
import { WRITE_RULES } from "../../../executor/writes/rules";
import type { WriteToAuthorize } from "../../../executor/writes/writes";
import { SEED, count } from "../../support/counts";
import { envelope } from "../../support/typedData";
import {
  ABI,
  HOLDER,
  MINE,
  NOW,
  THEIRS,
  authorize,
  credential,
  identity,
  keyring,
  makeWrites,
  writes,
} from "../../support/writes";

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
async function codeOf(request: WriteToAuthorize, by = writes): Promise<string> {
  try {
    await authorize(by, request);
    return "allowed";
  } catch (error) {
    if (error instanceof KeywrightError) return error.code;
    throw error;
  }
}
describe("authorizeWrites", () => {
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
    const convert = await envelope(Wallet.createRandom(), "ConvertAccount", NOW);
    await fc.assert(
      fc.asyncProperty(fc.oneof(simple, batch), fc.constantFrom(credential(MINE), identity), async (write, who) => {
        const answer = await authorize(writes, { credential: who, write, convert }).catch((error: unknown) => {
          if (error instanceof KeywrightError) return undefined;
          throw error;
        });
        if (answer !== undefined) allowed++;
        if (answer !== undefined) for (const id of subjectsOf(answer.calldata)) expect(id).to.not.equal(victim);
      }),
      { seed: SEED, numRuns: count(300, 10_000) },
    );
    expect(allowed, "the inputs include allowed writes").to.be.greaterThan(10);
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

  it("creates no account under the id of a usage key, which would take the key from its account", async () => {
    const account = keyIdOf(THEIRS) as Hash32;
    const newAccount = { functionName: "newAccount", args: [keyIdOf(MINE), true, "", "", walletAddressOf(MINE)] };
    const attempt = (accountOf: AccountId | undefined): Promise<string> =>
      codeOf(
        { credential: credential(MINE), write: newAccount },
        makeWrites({ accountOf: () => Promise.resolve(accountOf) }),
      );
    expect(await attempt(account as AccountId)).to.equal("key_id_taken");
    expect(await attempt(undefined), "an id that the contract never knew").to.equal("allowed");
    expect(await attempt(keyIdOf(MINE) as Hash32 as AccountId), "the account exists: the contract says so").to.equal(
      "allowed",
    );
    const owner = keyring.ownerWallet(HOLDER.issuer, HOLDER.subject);
    const write = { functionName: "newAccount", args: [packedAccountId(owner), true, "", "", owner] };
    const squatted = makeWrites({ accountOf: () => Promise.resolve(account as AccountId) });
    expect(await codeOf({ credential: identity, write }, squatted), "whose id is public").to.equal("allowed");
  });

  it("converts only with the new owner's fresh ConvertAccount signature, and never for an identity", async () => {
    const newOwner = Wallet.createRandom();
    const write = { functionName: "convertToChainSecuredAccount", args: [keyIdOf(MINE), newOwner.address] };
    const attempt = (convert?: { typed_data: unknown; signature: unknown }, who = credential(MINE)): Promise<string> =>
      codeOf({ credential: who, write, ...defined({ convert }) });
    expect(await attempt(await envelope(newOwner, "ConvertAccount", NOW))).to.equal("allowed");
    expect(await attempt()).to.equal("invalid_value");
    expect(await attempt(await envelope(Wallet.createRandom(), "ConvertAccount", NOW))).to.equal("not_authorized");
    expect(await attempt(await envelope(newOwner, "CreateWallet", NOW))).to.equal("typed_data_wrong_primary_type");
    expect(await attempt(await envelope(newOwner, "ConvertAccount", NOW - 301))).to.equal("typed_data_expired");
    const { typed_data } = await envelope(newOwner, "ConvertAccount", NOW);
    expect(
      await attempt({
        typed_data,
        signature: (await envelope(Wallet.createRandom(), "ConvertAccount", NOW)).signature,
      }),
    ).to.equal("signature_mismatch");
    expect(await attempt(await envelope(newOwner, "ConvertAccount", NOW), identity)).to.equal("owner_only");
    expect(await attempt(await envelope(newOwner, "ConvertAccount", NOW), credential(THEIRS))).to.equal(
      "not_authorized",
    );
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

  it("registers a wallet by a usage key for the account that the contract has for it, and no other", async () => {
    const account = `0x${"ab".repeat(32)}` as AccountId;
    const twin = `0x${"cd".repeat(16)}${account.slice(34)}` as AccountId;
    const { path, address } = keyring.mintPkp(account);
    const write = { functionName: "registerWalletDerivation", args: [keyIdOf(MINE), address, path, "", ""] };
    const attempt = async (accountOf: AccountId | undefined): Promise<string> => {
      const by = makeWrites({ accountOf: () => Promise.resolve(accountOf) });
      return codeOf({ credential: credential(MINE), write }, by);
    };
    expect(await attempt(account)).to.equal("allowed");
    expect(await attempt(twin)).to.equal("invalid_value");
    expect(await attempt(undefined)).to.equal("foreign_derivation_path");
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
