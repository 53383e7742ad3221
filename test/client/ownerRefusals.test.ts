/** A ChainSecured owner's writes that are refused: by the SDK, the contract, or the wallet's user. */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import {
  AbstractSigner,
  BrowserProvider,
  Wallet,
  makeError,
  toBeHex,
  type HDNodeWallet,
  type TransactionRequest,
} from "ethers";
import { ClientError } from "../../client";
import { sendByService } from "../../client/forwarding";
import { ownerFlows } from "../../client/ownerFlows";
import type { OwnerSigner } from "../../client/ownerSigner";
import type { CallOptions, Transport } from "../../client/transport";
import { sendWith, tryWrite } from "../../client/wallet";
import { wordsOf } from "../../dashboard/components/failures";
import type { SignedForwardRequest } from "../../protocol/forwardShape";
import { PathKind, type Address } from "../../protocol/ids";
import { AccountManager__factory, ERC2771Forwarder__factory } from "../../typechain-types";
import type { TestChain } from "../support/chain";
import { CID, HASH, codeOf, minted, mintedKey, ownerBed, permissions } from "../support/owners";

const FORWARDER = ERC2771Forwarder__factory.createInterface();

/** The reads that precede each forward, from a chain with this forwarder and this nonce. */
const nodeShowing = (forwarder: string, nonce: string) => ({
  estimateGas: async () => 50_000n,
  getTransaction: async () => null,
  call: async ({ data }: { data: string }) =>
    toBeHex(
      data === AccountManager__factory.createInterface().encodeFunctionData("trustedForwarder") ? forwarder : nonce,
      32,
    ),
});

describe("a ChainSecured owner's writes are refused", () => {
  const bed = ownerBed();
  const { ownerOf, freshOwner } = bed;
  let chain: TestChain;
  before(() => void (chain = bed.chain()));

  it("by the contract, under the API's codes, before anything is sent", async () => {
    const { owner, wallet } = await freshOwner();
    const sent = await chain.provider.getTransactionCount(wallet.address);
    const foreign = minted(await ownerOf(await chain.wallet()), PathKind.pkp);
    const key = mintedKey(owner);
    const refusals = {
      account_id_taken: owner.createAccount({ account_name: "again", account_description: "" }),
      unknown_group: owner.removeGroup({ group_id: 7 }),
      unknown_action: owner.deleteAction({ hashed_cid: HASH }),
      unknown_pkp: owner.updatePkp({ pkp_id: wallet.address, name: "", description: "" }),
      unknown_pkp_number: owner.updatePkp({ pkp_id: 3, name: "", description: "" }),
      unknown_usage_key: owner.removeUsageApiKey({ usage_api_key: key.api_key_hash }),
      foreign_derivation_path: owner.registerPkp(foreign),
      string_too_long: owner.updateAccount({ name: "x".repeat(129), description: "" }),
      same_owner: owner.transferOwnership({ new_owner_address: wallet.address }),
      zero_address: owner.transferOwnership({ new_owner_address: `0x${"0".repeat(40)}` }),
      value_too_large: owner.attachUsageKey(key, permissions([], { expiration: String(2n ** 40n) })),
    };
    for (const [code, refusal] of Object.entries(refusals)) expect(await codeOf(refusal)).to.equal(code);
    expect(await chain.provider.getTransactionCount(wallet.address)).to.equal(sent);
  });

  it("before any request, when an argument is invalid", async () => {
    const { owner } = await freshOwner();
    const key = randomBytes(32).toString("base64").slice(1);
    const refusals = [
      async () =>
        (await ownerOf(await chain.wallet(), { accountId: owner.accountId })).createAccount({
          account_name: "a",
          account_description: "",
        }),
      () => owner.updateAccount({ name: "half a pair \ud800", description: "" }),
      () => owner.addGroup({ group_name: "g" } as never),
      () => owner.removeGroup({ group_id: 0 }),
      () => owner.removeGroup({ group_id: "first" }),
      () => owner.removeGroup({ group_id: 2 ** 53 }),
      () => owner.addActionToGroup({ group_id: 1, action_ipfs_cid: HASH }),
      () => owner.deleteAction({ hashed_cid: CID }),
      () => owner.addPkpToGroup({ group_id: 1, pkp_id: 0 }),
      () => owner.addPkpToGroup({ group_id: 1, pkp_id: "0x12zz" }),
      () => owner.transferOwnership({ new_owner_address: "vitalik.eth" }),
      () => owner.removeUsageApiKey({ usage_api_key: key }),
      () => ownerOf(Wallet.createRandom().connect(chain.provider), { accountId: "0x12" }),
      () => ownerOf(Wallet.createRandom().connect(chain.provider), { owner: "0x12" }),
    ];
    for (const refused of refusals) {
      const error: unknown = await refused().then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error, String(refused)).to.be.instanceOf(ClientError).with.property("code", "invalid_argument");
      expect((error as Error).message).not.to.include(key);
    }
  });

  it("when another wallet signs", async () => {
    const { owner } = await freshOwner();
    const stranger = await ownerOf(await chain.wallet(), { accountId: owner.accountId });
    expect(await codeOf(stranger.addGroup({ group_name: "g", group_description: "" }))).to.equal("not_authorized");
  });

  it("when wallet and service are on different chains, or the contract is not the expected one", async () => {
    const wallet = await chain.wallet();
    expect(await codeOf(ownerOf(wallet, { expect: { chainId: 1 } }))).to.equal("wrong_chain");
    expect(await codeOf(ownerOf(wallet, { expect: { contractAddress: wallet.address } }))).to.equal("wrong_chain");
    expect(
      (await ownerOf(wallet, { expect: { contractAddress: chain.contractAddress, chainId: 31337n } })).chainId,
    ).to.equal(31337n);
    expect(await codeOf(ownerOf(Wallet.createRandom()))).to.equal("no_provider");
  });

  it("when the wallet's user declines, or has no gas", async () => {
    const { owner, wallet } = await freshOwner();
    const declining = await ownerOf(new Declining(wallet), { accountId: owner.accountId });
    expect(await codeOf(declining.addGroup({ group_name: "g", group_description: "" }))).to.equal("wallet_declined");
    expect(await codeOf(declining.mintPkp())).to.equal("wallet_declined");
    await chain.provider.send("anvil_setBalance", [wallet.address, "0x0"]);
    expect(await codeOf(owner.addGroup({ group_name: "g", group_description: "" }))).to.equal("transaction_failed");
  });

  it("by no answer in time, with the hash of what was sent, whoever pays its gas", async () => {
    const { wallet, owner } = await freshOwner();
    const hash = `0x${"5e".repeat(32)}`;
    const late = (): Promise<never> =>
      Promise.reject(makeError("timeout exceeded", "TIMEOUT", { operation: "wait", reason: "timeout" }));
    const signer: OwnerSigner = {
      provider: null,
      getAddress: () => wallet.getAddress(),
      getNonce: () => wallet.getNonce(),
      signTypedData: (domain, types, value) => wallet.signTypedData(domain, types, value),
      sendTransaction: async () => ({ hash, nonce: 0, wait: late }),
    };
    const transport: Transport = {
      call: async () => ({ body: { nonce: "0", transaction_hash: hash }, headers: new Headers() }),
    };
    const domain = { name: "Forwarder", version: "1", chainId: 31_337n, verifyingContract: wallet.address } as const;
    const provider = { ...nodeShowing(wallet.address, "0"), waitForTransaction: late };
    const transaction = owner.transaction(await owner.prepare.freezeAccount());
    for (const send of [
      sendWith(signer, 31_337n, {}),
      sendByService({ signer, transport, provider, domain } as never),
    ]) {
      const error: unknown = await send(transaction).catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(ClientError).with.property("code", "client_timed_out");
      expect(wordsOf(error)).to.include("look for its hash before sending again").and.to.include(hash);
      expect((error as ClientError).retryable).to.equal(false);
    }
  });

  const TO = `0x${"a1".repeat(20)}` as Address;
  const CALL = { to: TO, value: "0", data: "0x" } as const;
  const HASH_SENT = `0x${"5e".repeat(32)}`;
  const refusalOf = (work: Promise<unknown>): Promise<ClientError> =>
    work.then(
      () => Promise.reject(new Error("nothing was refused")),
      (error: unknown) => (error instanceof ClientError ? error : Promise.reject(error as Error)),
    );
  const RECEIPT = { hash: HASH_SENT, blockNumber: 1, logs: [] };

  it("by a lost answer, which is no reason to send again", async () => {
    const wallet = Wallet.createRandom();
    const sending = (cause: unknown): Promise<ClientError> => {
      const signer = { getNonce: async () => 0, sendTransaction: () => Promise.reject(cause as Error) };
      return refusalOf(sendWith(signer as never, 1n, {})(CALL));
    };
    const lost = [
      makeError("gone", "NETWORK_ERROR", { event: "changed" }),
      makeError("502", "SERVER_ERROR", { request: "" as never }),
      makeError("late", "TIMEOUT", { operation: "send", reason: "timeout" }),
      Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }),
    ];
    for (const cause of lost) {
      const { code, retryable, message, facts } = await sending(cause);
      expect([code, retryable, facts], String(cause)).to.deep.equal(["transaction_failed", false, {}]);
      expect(message).to.include("may have been sent");
    }
    const known = makeError("bad", "BAD_DATA", { value: 1, info: { sendTransactionHash: HASH_SENT } });
    expect((await sending(known)).facts).to.deep.equal({ transaction_hash: HASH_SENT });
    expect((await sending(makeError("low", "NONCE_EXPIRED", { transaction: {} as never }))).message).to.include(
      "refused",
    );

    const domain = { name: "Forwarder", version: "1", chainId: 1n, verifyingContract: TO } as const;
    const provider = nodeShowing(TO, "7");
    const unknown = ["submission_pending", "timed_out", "not_ready", "idempotency_in_progress"] as const;
    for (const answered of ["network_failed", "queue_full", ...unknown] as const) {
      const transport: Transport = {
        call: async ({ path }) => {
          if (path.endsWith("/relay"))
            throw new ClientError(answered, "lost", {
              ...{ retryable: true, facts: { submission_id: "s", may_have_taken_effect: answered === "queue_full" } },
            });
          return { body: { nonce: "7" }, headers: new Headers() };
        },
      };
      const { code, retryable, facts } = await refusalOf(
        sendByService({ signer: wallet, transport, provider, domain } as never)(CALL),
      );
      expect([code, retryable, facts["nonce"]], answered).to.deep.equal(["transaction_failed", false, "7"]);
      expect(facts["submission_id"]).to.equal("s");
      expect(Number(facts["deadline"])).to.be.greaterThan(Date.now() / 1_000);
    }
  });

  it("by a transaction that reverted, also a replacement's, and by another forward than the asked one", async () => {
    const wallet = Wallet.createRandom();
    const reverted = { ...RECEIPT, status: 0 };
    const replaced = makeError("replaced", "TRANSACTION_REPLACED", {
      ...{ cancelled: false, reason: "repriced", hash: HASH_SENT, replacement: {} as never },
      receipt: reverted as never,
    });
    for (const wait of [async () => reverted, () => Promise.reject(replaced)]) {
      const signer = { getNonce: async () => 0, sendTransaction: async () => ({ hash: HASH_SENT, nonce: 0, wait }) };
      const { code, facts } = await refusalOf(sendWith(signer as never, 1n, {})(CALL));
      expect([code, facts]).to.deep.equal(["transaction_failed", { transaction_hash: HASH_SENT }]);
    }

    const log = (address: string, from: string, nonce: number, success: boolean) => ({
      address,
      ...FORWARDER.encodeEventLog("ExecutedForwardRequest", [from, nonce, success]),
    });
    const domain = { name: "Forwarder", version: "1", chainId: 1n, verifyingContract: TO } as const;
    let asked = {} as SignedForwardRequest;
    const transport: Transport = {
      call: async ({ path, body }) => {
        if (path.endsWith("/relay")) asked = body as SignedForwardRequest;
        return { body: { nonce: "7", transaction_hash: HASH_SENT }, headers: new Headers() };
      },
    };
    const forwarded = (...logs: object[]): Promise<unknown> => {
      const provider = {
        ...nodeShowing(TO, "7"),
        waitForTransaction: async () => ({ ...RECEIPT, status: 1, logs }),
        getTransaction: async () => ({ to: TO, data: FORWARDER.encodeFunctionData("execute", [asked]) }),
      };
      return sendByService({ signer: wallet, transport, provider, domain } as never)(CALL);
    };
    const good = log(TO, wallet.address, 7, true);
    await forwarded(log(TO, TO, 7, false), good);
    for (const logs of [
      [],
      [log(TO, wallet.address, 7, false)],
      [log(TO, wallet.address, 6, true)],
      [log(TO, TO, 7, true)],
      [log(wallet.address, wallet.address, 7, true)],
    ])
      expect(await codeOf(forwarded(...logs)), JSON.stringify(logs)).to.equal("transaction_failed");
  });

  it("by a wallet that has changed to another chain since", async () => {
    const wallet = await chain.wallet();
    let chainId = 31_337n;
    const provider = {
      getNetwork: async () => ({ chainId }),
      call: () => Promise.resolve("0x"),
    };
    let given: bigint | undefined;
    const signer = {
      provider,
      getAddress: () => wallet.getAddress(),
      getNonce: async () => 0,
      sendTransaction: async (transaction: { chainId?: bigint }) => {
        given = transaction.chainId;
        return { hash: HASH_SENT, nonce: 0, wait: async () => RECEIPT };
      },
    };
    const owner = await ownerOf(signer as never);
    const write = await owner.prepare.freezeAccount();
    await owner.send(write);
    expect(given).to.equal(31_337n);
    given = undefined;
    chainId = 1n;
    expect(await codeOf(owner.send(write))).to.equal("wrong_chain");
    expect(given).to.equal(undefined);
  });

  it("by ethers' provider of a browser's wallet that has changed, of any network or of one", async () => {
    for (const network of ["any", undefined]) {
      let chainId = "0x1";
      const called: string[] = [];
      const request = async ({ method }: { method: string }): Promise<string> => {
        called.push(method);
        return method === "eth_chainId" ? chainId : "0x";
      };
      const provider = new BrowserProvider({ request }, network, { cacheTimeout: -1 });
      await tryWrite(provider, 1n, TO, CALL);
      expect(called.splice(0)).to.include("eth_call");
      chainId = "0x2";
      expect(await codeOf(tryWrite(provider, 1n, TO, CALL)), network).to.equal("wrong_chain");
      expect(called).to.not.include("eth_call");
      provider.destroy();
    }
  });

  it("not for the idempotency key of an earlier mint: another one has its own", async () => {
    const keys: unknown[] = [];
    const flows = ownerFlows({
      mintUsageKey: async (options: CallOptions) => {
        keys.push(options.idempotencyKey);
        return { usage_api_key: "a secret", minted: { api_key_hash: HASH } };
      },
      prepare: { attachUsageKey: async () => ({}) },
      check: () => (keys.length > 1 ? Promise.resolve() : Promise.reject(new ClientError("key_id_taken", "taken"))),
      send: async () => ({}),
      sender: () => undefined,
    } as never);
    await flows.createUsageKey(permissions([]), { idempotencyKey: "once" });
    expect(keys).to.deep.equal(["once", undefined]);
  });

  it("without a secret in the error, which is in the progress", async () => {
    const minted = { id: "1", api_key_hash: HASH, hook_secret: "a secret" };
    const flows = ownerFlows({
      createTrigger: async () => minted,
      prepare: { attachUsageKey: async () => ({}) },
      send: () => Promise.reject(new ClientError("client_timed_out", "late")),
      sender: () => undefined,
    } as never);
    const told: unknown[] = [];
    const failed = flows.createTrigger({ name: "t" } as never, { onProgress: (one) => void told.push(one) });
    const { facts } = await refusalOf(failed);
    expect(facts).to.deep.equal({ minted: { id: "1", api_key_hash: HASH } });
    expect(told[0]).to.deep.equal({ step: "minted", minted });
  });
});

/** A wallet whose user declines. */
class Declining extends AbstractSigner {
  constructor(readonly wallet: HDNodeWallet) {
    super(wallet.provider);
  }
  getAddress = () => this.wallet.getAddress();
  connect = (): never => {
    throw new Error("not used");
  };
  signTransaction = () => this.#no();
  signMessage = () => this.#no();
  signTypedData = () => this.#no();
  override sendTransaction = (_transaction: TransactionRequest) => this.#no();
  #no(): Promise<never> {
    return Promise.reject(
      makeError("user rejected action", "ACTION_REJECTED", { action: "unknown", reason: "rejected" }),
    );
  }
}
