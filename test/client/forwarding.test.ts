/** Writes that the service sends, by a service that lies: only what the chain shows counts as success. */
import { expect } from "chai";
import { concat, type HDNodeWallet } from "ethers";
import { ClientError, createChainSecuredClient, type ChainSecuredClient } from "../../client";
import { sendByService } from "../../client/forwarding";
import type { OwnerProvider } from "../../client/ownerSigner";
import type { Address } from "../../protocol/ids";
import type { SignedForwardRequest } from "../../protocol/forwardShape";
import { ERC2771Forwarder__factory } from "../../typechain-types";
import { connect, startTestChain, type TestChain } from "../support/chain";
import { codeOf, mintedKey, permissions } from "../support/owners";

const FORWARDER = ERC2771Forwarder__factory.createInterface();
const REFUND_RECEIVER = `0x${"d0".repeat(20)}`;

/** Emits the rest of its calldata under the two topics with which the calldata begins. */
const EMITTER = "0x6013600c60003960136000f36040604060003760203560003560406000a200";
/** Hands its calldata on to an address. */
const handingOnTo = (address: string): string =>
  concat(["0x602d600c600039602d6000f3", "0x366000600037600060003660006000", "0x73", address, "0x5af100"]);

describe("a write that the service sends", () => {
  let chain: TestChain;
  let forwarder: string;
  before(async () => {
    chain = await startTestChain();
    forwarder = await chain.contract.trustedForwarder();
  });
  after(() => chain.stop());

  const sent = async (to: string, data: string): Promise<string> => {
    const transaction = await chain.deployer.sendTransaction({ to, data, gasLimit: 3_000_000n });
    await transaction.wait();
    return transaction.hash;
  };
  const batch = (...requests: SignedForwardRequest[]): string =>
    FORWARDER.encodeFunctionData("executeBatch", [requests, REFUND_RECEIVER]);
  const alone = (request: SignedForwardRequest): string => FORWARDER.encodeFunctionData("execute", [request]);
  async function deployed(code: string): Promise<string> {
    const receipt = await (await chain.deployer.sendTransaction({ data: code })).wait();
    return receipt?.contractAddress ?? "";
  }

  /** What the service answers; honest unless a test says otherwise. */
  interface Answers {
    readonly forwarder?: () => string;
    readonly nonce?: (honest: string) => string;
    /** The hash of the transaction in which the request is said to be. */
    readonly relay?: (request: SignedForwardRequest) => Promise<string>;
  }

  async function ownerOf(wallet: HDNodeWallet, answers: Answers = {}, provider?: OwnerProvider) {
    const contract = ERC2771Forwarder__factory.connect(forwarder, chain.provider);
    const config = {
      contract_address: chain.contractAddress,
      chain_id: 31337,
      forwarder_address: answers.forwarder?.() ?? forwarder,
      typed_data_domain: { name: "Keywright ChainSecured", version: "1", chainId: "31337" },
    };
    const answerTo = async (path: string, body: unknown): Promise<object> => {
      if (path.endsWith("/get_node_chain_config")) return config;
      if (path.endsWith("/relay_nonce")) {
        const honest = String(await contract.nonces(wallet.address));
        return { nonce: answers.nonce?.(honest) ?? honest };
      }
      const request = body as SignedForwardRequest;
      return { success: true, transaction_hash: await (answers.relay ?? honestly)(request) };
    };
    return createChainSecuredClient({
      baseUrl: "http://127.0.0.1:1",
      signer: wallet,
      gas: "service",
      ...(provider === undefined ? {} : { provider }),
      fetch: async (url, init) => {
        const body: unknown = typeof init?.body === "string" ? JSON.parse(init.body) : undefined;
        return Response.json(await answerTo(new URL(String(url)).pathname, body));
      },
    });
  }
  const honestly = (request: SignedForwardRequest): Promise<string> => sent(forwarder, alone(request));

  const keyCount = async (owner: ChainSecuredClient): Promise<number> => (await owner.listApiKeys()).total;

  /** An owner with a usage key that has leaked, and the last transaction in which the service sent one of its calls. */
  async function withLeakedKey() {
    const wallet = await chain.wallet("0");
    const owner = await ownerOf(wallet);
    await owner.createAccount({ account_name: "Acme", account_description: "" });
    const key = mintedKey(owner);
    const { transaction_hash: old } = await owner.attachUsageKey(key, permissions([0]));
    return { wallet, owner, leaked: { usage_api_key: key.api_key_hash }, old };
  }

  /** The signed request, kept by a service that says that it failed. */
  async function keptRequest(wallet: HDNodeWallet): Promise<SignedForwardRequest> {
    let kept: SignedForwardRequest | undefined;
    const relay = (request: SignedForwardRequest): Promise<string> => {
      kept = request;
      return Promise.reject(new ClientError("invalid_argument", "kept"));
    };
    await (await ownerOf(wallet, { relay })).updateAccount({ name: "other", description: "" }).catch(() => undefined);
    if (kept === undefined) throw new Error("nothing was signed");
    return kept;
  }

  it("succeeds alone and among others of its transaction, of the same owner too", async () => {
    const { wallet, owner, leaked } = await withLeakedKey();
    const other = await withLeakedKey();
    const relay = async (request: SignedForwardRequest): Promise<string> =>
      sent(forwarder, batch(await keptRequest(other.wallet), request));
    await (await ownerOf(wallet, { relay })).removeUsageApiKey(leaked);
    expect(await keyCount(owner)).to.equal(0);
    await owner.freezeAccount();
    expect(await owner.account()).to.include({ frozen: true });
    // Makes no event of the account contract.
    await owner.freezeAccount();
  });

  it("is none by the transaction of an earlier call", async () => {
    const { wallet, owner, leaked, old } = await withLeakedKey();
    const lying = await ownerOf(wallet, { nonce: () => "1", relay: async () => old });
    expect(await codeOf(lying.removeUsageApiKey(leaked))).to.equal("transaction_failed");
    expect(await keyCount(owner)).to.equal(1);
  });

  it("is none by the transaction of an earlier call, as a node that lags behind sees the nonce", async () => {
    const { wallet, owner, leaked, old } = await withLeakedKey();
    const lagging = connect(chain.rpcUrl);
    const call = lagging.call.bind(lagging);
    lagging.call = async (transaction) =>
      transaction.to === forwarder ? FORWARDER.encodeFunctionResult("nonces", [1n]) : call(transaction);
    const lying = await ownerOf(wallet, { nonce: () => "1", relay: async () => old }, lagging as never);
    expect(await codeOf(lying.removeUsageApiKey(leaked))).to.equal("transaction_failed");
    expect(await keyCount(owner)).to.equal(1);
    lagging.destroy();
  });

  it("is none by the event of another contract, which the service names as forwarder", async () => {
    const { wallet, owner, leaked } = await withLeakedKey();
    const own = await deployed(EMITTER);
    let asked = 0;
    const relay = async ({ from }: SignedForwardRequest): Promise<string> => {
      asked += 1;
      const { topics, data } = FORWARDER.encodeEventLog("ExecutedForwardRequest", [from, 2n, true]);
      return sent(own, concat([...topics, data]));
    };
    const lying = await ownerOf(wallet, { forwarder: () => own, relay });
    const error: unknown = await lying.removeUsageApiKey(leaked).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(ClientError).with.property("code", "wrong_chain");
    expect((error as Error).message)
      .to.include(own)
      .and.to.include(forwarder);
    expect([asked, await keyCount(owner)]).to.deep.equal([0, 1]);
  });

  it("is none by another call that the owner had signed for the same nonce, wherever it is carried out", async () => {
    const proxy = await deployed(handingOnTo(forwarder));
    const ways: Record<string, (kept: SignedForwardRequest, asked: SignedForwardRequest) => Promise<string>> = {
      alone: (kept) => sent(forwarder, alone(kept)),
      before: (kept, asked) => sent(forwarder, batch(kept, asked)),
      beside: (kept, asked) => sent(proxy, concat([alone(kept), asked.signature])),
    };
    for (const [way, relayed] of Object.entries(ways)) {
      const { wallet, owner, leaked } = await withLeakedKey();
      const kept = await keptRequest(wallet);
      const lying = await ownerOf(wallet, { relay: (asked) => relayed(kept, asked) });
      expect(await codeOf(lying.removeUsageApiKey(leaked)), way).to.equal("transaction_failed");
      expect([await keyCount(owner), (await owner.account()).name], way).to.deep.equal([1, "other"]);
    }
  });

  it("is unproven by a transaction that could call the forwarder within itself", async () => {
    const { wallet, leaked } = await withLeakedKey();
    const relay = (asked: SignedForwardRequest): Promise<string> =>
      sent(forwarder, batch({ ...asked, to: REFUND_RECEIVER as Address }, asked));
    expect(await codeOf((await ownerOf(wallet, { relay })).removeUsageApiKey(leaked))).to.equal("transaction_failed");
  });

  it("waits for a node that shows the owner's last call a moment later", async () => {
    const { wallet, owner, leaked } = await withLeakedKey();
    const lagging = connect(chain.rpcUrl);
    const call = lagging.call.bind(lagging);
    let stale = 2;
    lagging.call = async (transaction) =>
      transaction.to === forwarder && stale-- > 0 ? FORWARDER.encodeFunctionResult("nonces", [1n]) : call(transaction);
    await (await ownerOf(wallet, {}, lagging)).removeUsageApiKey(leaked);
    expect([await keyCount(owner), stale]).to.deep.equal([0, -1]);
    lagging.destroy();
  });

  it("is refused, with nothing signed, for a nonce that the chain never shows, or is none", async () => {
    const { wallet, owner } = await withLeakedKey();
    const domain = {
      name: "Keywright Forwarder",
      version: "1",
      chainId: 31337n,
      verifyingContract: forwarder,
    } as const;
    const nonces = { "7": /says .* 7.* chain shows 2.*behind/, x: /no number/ };
    for (const [nonce, words] of Object.entries(nonces)) {
      const transport = { call: async () => ({ body: { nonce }, headers: new Headers() }) };
      const signer = Object.assign(Object.create(wallet) as HDNodeWallet, {
        signTypedData: () => Promise.reject(new Error("signed")),
      });
      const send = sendByService({
        ...{ signer, transport, provider: chain.provider, lagMs: 700 },
        domain: domain as never,
      });
      const error: unknown = await send(owner.transaction(await owner.prepare.freezeAccount())).catch(
        (reason: unknown) => reason,
      );
      expect(error).to.be.instanceOf(ClientError).with.property("code", "unexpected_answer");
      expect((error as Error).message).to.match(words);
    }
  });
});
