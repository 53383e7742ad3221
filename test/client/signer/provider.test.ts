/** PKPs as a wallet of a web application: EIP-1193, EIP-6963 with wagmi's discovery library, and wagmi itself. */
import { expect } from "chai";
import {
  connect as connectWagmi,
  createConfig,
  disconnect,
  getAccount,
  sendTransaction,
  signMessage,
  signTypedData,
  switchChain,
  waitForTransactionReceipt,
} from "@wagmi/core";
import { createStore } from "mipd";
import {
  Transaction,
  Wallet as EthersWallet,
  parseEther,
  verifyMessage,
  verifyTypedData,
  type JsonRpcProvider,
  type TransactionLike,
} from "ethers";
import { createPublicClient, createWalletClient, custom, defineChain, http, numberToHex, type Chain } from "viem";
import { announceKeywright, keywrightConnector, keywrightProvider } from "../../../client/provider";
import type { Client } from "../../../client";
import { STANDARD_ACTIONS } from "../../../client/standardActions";
import { connect } from "../../support/chain";
import { makeAccount, makeUsageKey } from "../../support/journey";
import { useStack } from "../../support/stack";

const TO = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const DOMAIN = { name: "Orders", version: "1", chainId: 31337, verifyingContract: TO } as const;
const TYPES = { Order: [{ name: "amount", type: "uint256" }] } as const;

describe("PKPs as a wallet of a web application", function () {
  this.timeout(60_000);
  const stack = useStack();
  let node: JsonRpcProvider;
  let bot: Client;
  let pkp: `0x${string}`;
  let chain: Chain;
  let other: Chain;

  before(async () => {
    const { baseUrl, rpcUrl } = stack();
    node = connect(rpcUrl);
    const { client } = await makeAccount(baseUrl);
    pkp = (await client.createWallet({})).wallet_address as `0x${string}`;
    const { group_id } = await client.addGroup({
      group_name: "wallet",
      group_description: "",
      pkp_ids_permitted: [pkp],
    });
    const { message, typedData, transaction } = STANDARD_ACTIONS;
    await client.changeGroupActions({ id: group_id, add: [message.cid, typedData.cid, transaction.cid], remove: [] });
    bot = (await makeUsageKey(client, baseUrl, { execute_in_groups: [group_id] })).client;
    await node.send("anvil_setBalance", [pkp, `0x${parseEther("10").toString(16)}`]);
    const made = { name: "development", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 } };
    chain = defineChain({ ...made, id: 31337, rpcUrls: { default: { http: [rpcUrl] } } });
    other = defineChain({ ...made, id: 99, rpcUrls: { default: { http: ["http://127.0.0.1:9"] } } });
  });
  after(() => node?.destroy());

  const open = (more: Partial<Parameters<typeof keywrightProvider>[0]> = {}) =>
    keywrightProvider({ client: bot, pkpIds: [pkp], chains: [chain, other], ...more });
  const codeOf = (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => "no error",
      (error: { code?: unknown }) => error.code,
    );

  it("gives accounts once they were asked for, and signs for them alone", async () => {
    const provider = open();
    const seen: unknown[] = [];
    provider.on("accountsChanged", (accounts) => seen.push(accounts));
    provider.on("connect", (info) => seen.push(info));
    const hello = { method: "personal_sign", params: ["0x68656c6c6f", pkp] };
    expect(await provider.request({ method: "eth_accounts" })).to.deep.equal([]);
    expect(await codeOf(provider.request(hello))).to.equal(4100);
    expect(await provider.request({ method: "eth_requestAccounts" })).to.deep.equal([pkp]);
    expect(seen).to.deep.equal([{ chainId: "0x7a69" }, [pkp]]);
    for (const params of [hello.params, [...hello.params].reverse(), ["hello", pkp.toLowerCase()]])
      expect(verifyMessage("hello", String(await provider.request({ ...hello, params })))).to.equal(pkp);
    expect(await codeOf(provider.request({ ...hello, params: ["0x00", TO] }))).to.equal(4100);
    await provider.request({ method: "wallet_revokePermissions", params: [{ eth_accounts: {} }] });
    expect(await codeOf(provider.request(hello))).to.equal(4100);
  });

  it("signs typed data and transactions as nodes take them", async () => {
    const provider = open();
    await provider.request({ method: "eth_requestAccounts" });
    const data = {
      domain: DOMAIN,
      types: {
        ...TYPES,
        EIP712Domain: [
          { name: "name", type: "string" },
          { name: "version", type: "string" },
          { name: "chainId", type: "uint256" },
          { name: "verifyingContract", type: "address" },
        ],
      },
      primaryType: "Order",
      message: { amount: "7" },
    };
    for (const given of [data, JSON.stringify(data)]) {
      const signature = await provider.request({ method: "eth_signTypedData_v4", params: [pkp, given] });
      expect(verifyTypedData(DOMAIN, { Order: [...TYPES.Order] }, { amount: 7n }, String(signature))).to.equal(pkp);
    }
    const ofChain = (chainId: unknown) =>
      provider.request({
        method: "eth_signTypedData_v4",
        params: [pkp, { ...data, domain: { ...DOMAIN, chainId } }],
      });
    for (const chainId of [31_337n, "31337", "0x7a69"]) {
      const signature = String(await ofChain(chainId));
      expect(verifyTypedData(DOMAIN, { Order: [...TYPES.Order] }, data.message, signature)).to.equal(pkp);
    }
    for (const chainId of [1, 1n, "1", "0x1", "", null, [31_337]])
      expect(await codeOf(ofChain(chainId)), String(chainId)).to.equal(-32602);
    const transaction = { from: pkp, to: TO, value: "0x1", data: "0x" };
    const raw = await provider.request({ method: "eth_signTransaction", params: [transaction] });
    expect(Transaction.from(String(raw)).from).to.equal(pkp);
    const hashes = await Promise.all(
      [1, 2, 3].map((value) =>
        provider.request({ method: "eth_sendTransaction", params: [{ ...transaction, value: numberToHex(value) }] }),
      ),
    );
    for (const hash of hashes) expect((await node.waitForTransaction(String(hash)))?.status).to.equal(1);
    expect(await provider.request({ method: "eth_getTransactionCount", params: [pkp, "latest"] })).to.equal("0x3");
    // Nothing that was approved is left out of what is signed.
    for (const other of [
      { chainId: "0x1" },
      { authorizationList: [] },
      { blobVersionedHashes: [`0x01${"00".repeat(31)}`] },
      { data: "0x01", input: "0x02" },
    ])
      for (const method of ["eth_sendTransaction", "eth_signTransaction"])
        expect(await codeOf(provider.request({ method, params: [{ ...transaction, ...other }] }))).to.equal(-32602);
  });

  it("leaves no gap behind a transaction that failed on the way, and pays none twice", async () => {
    const provider = open();
    await provider.request({ method: "eth_requestAccounts" });
    const count = () => node.getTransactionCount(pkp, "pending");
    const before = await count();
    const send = (value: bigint) =>
      provider.request({ method: "eth_sendTransaction", params: [{ from: pkp, to: TO, value: numberToHex(value) }] });
    const [first, tooMuch, second] = await Promise.allSettled([send(1n), send(parseEther("1000000")), send(2n)]);
    expect([first.status, tooMuch.status, second.status]).to.deep.equal(["fulfilled", "rejected", "fulfilled"]);
    for (const one of [first, second])
      expect((await node.waitForTransaction(String((one as { value?: unknown }).value), 1, 5_000))?.status).to.equal(1);
    expect(await count()).to.equal(before + 2);
    const raw = { from: pkp, to: TO, value: "0x1" };
    const signed = String(await provider.request({ method: "eth_signTransaction", params: [raw] }));
    expect(Transaction.from(signed).nonce).to.equal(before + 2);
    expect((await node.waitForTransaction(String(await send(3n)), 1, 5_000))?.status).to.equal(1);
    expect(await count()).to.equal(before + 3);
  });

  it("signs what was approved, for the chain that was told, whatever the page changes meanwhile", async () => {
    const seen: unknown[] = [];
    const transaction = { from: pkp, to: TO, value: "0x1" };
    const data = { domain: {}, types: TYPES, primaryType: "Order", message: { amount: "7" } };
    const provider = open({
      approve: async (request, { id }) => {
        data.message.amount = "8";
        transaction.value = "0x2";
        await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId: "0x63" }] });
        seen.push((request.params as unknown[])[0], id);
        return true;
      },
    });
    await provider.request({ method: "eth_requestAccounts" });
    const raw = await provider.request({ method: "eth_signTransaction", params: [transaction] });
    const { value, chainId } = Transaction.from(String(raw));
    expect([value, chainId]).to.deep.equal([1n, 31_337n]);
    expect(seen).to.deep.equal([{ from: pkp, to: TO, value: "0x1" }, 31_337]);
    data.message.amount = "7";
    const signature = await provider.request({ method: "eth_signTypedData_v4", params: [pkp, data] });
    expect(verifyTypedData({}, { Order: [...TYPES.Order] }, { amount: 7n }, String(signature))).to.equal(pkp);
    const odd = { method: "personal_sign", params: [pkp, { toString: () => "hello" }] };
    expect(await codeOf(provider.request(odd))).to.equal(-32602);
  });

  it("refuses what is not approved, unknown methods, other chains, and to let a node sign", async () => {
    const asked: unknown[] = [];
    const provider = open({ approve: ({ method }) => asked.push(method) === 0 });
    await provider.request({ method: "eth_requestAccounts" });
    expect(await codeOf(provider.request({ method: "personal_sign", params: ["0x00", pkp] }))).to.equal(4001);
    expect(asked).to.deep.equal(["personal_sign"]);
    for (const method of ["eth_sign", "eth_signTypedData", "eth_decrypt", "anvil_setBalance", "wallet_watchAsset"])
      expect(await codeOf(provider.request({ method, params: [pkp, "0x00"] })), method).to.equal(4200);
    const changed: unknown[] = [];
    provider.on("chainChanged", (chainId) => changed.push(chainId));
    const to = (chainId: string) => provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
    expect(await codeOf(to("0x1"))).to.equal(4902);
    await to("0x63");
    expect([changed, await provider.request({ method: "eth_chainId" })]).to.deep.equal([["0x63"], "0x63"]);
  });

  it("serves viem as any wallet of a browser does", async () => {
    const wallet = createWalletClient({ chain, transport: custom(open()) });
    const [account] = await wallet.requestAddresses();
    expect(account).to.equal(pkp);
    const hash = await wallet.sendTransaction({ account: pkp, to: TO, value: 1n });
    const reader = createPublicClient({ chain, transport: http() });
    expect((await reader.waitForTransactionReceipt({ hash })).status).to.equal("success");
  });

  it("connects, signs, sends, switches and disconnects in wagmi", async () => {
    const connector = keywrightConnector({ client: bot, pkpIds: [pkp] });
    const config = createConfig({
      chains: [chain, other],
      connectors: [connector],
      transports: { [chain.id]: http(), [other.id]: http() },
      storage: null,
    });
    const [used] = config.connectors;
    if (used === undefined) throw new Error("wagmi has no connector");
    const { accounts, chainId } = await connectWagmi(config, { connector: used });
    expect([accounts, chainId]).to.deep.equal([[pkp], 31337]);
    expect(verifyMessage("hello", await signMessage(config, { message: "hello" }))).to.equal(pkp);
    const typed = { domain: DOMAIN, types: TYPES, primaryType: "Order", message: { amount: 7n } } as const;
    const signature = await signTypedData(config, typed);
    expect(verifyTypedData(DOMAIN, { Order: [...TYPES.Order] }, { amount: 7n }, signature)).to.equal(pkp);
    const hash = await sendTransaction(config, { to: TO, value: 1n });
    expect((await waitForTransactionReceipt(config, { hash })).status).to.equal("success");
    await switchChain(config, { chainId: 99 });
    expect(getAccount(config).chainId).to.equal(99);
    await disconnect(config);
    expect(getAccount(config).status).to.equal("disconnected");
    expect(await await used.isAuthorized()).to.equal(false);
  });

  it("is announced to a page that asks before or after", () => {
    const page = new EventTarget();
    Object.assign(globalThis, { window: page });
    try {
      const provider = open();
      const stop = announceKeywright(provider, { name: "Treasury" });
      const store = createStore();
      const found = store.getProviders();
      expect(
        found.map(({ info, provider: one }) => [info.name, info.rdns, one === (provider as unknown)]),
      ).to.deep.equal([["Treasury", "keywright.local", true]]);
      expect(found[0]?.info.uuid).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      stop();
      store.reset();
      expect(store.getProviders()).to.deep.equal([]);
      store.destroy();
    } finally {
      Reflect.deleteProperty(globalThis, "window");
    }
  });
});

describe("PKPs as a wallet, by themselves", () => {
  const wallet = EthersWallet.createRandom();
  const pkp = wallet.address as `0x${string}`;
  const made = { name: "development", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 } };
  const chain = defineChain({ ...made, id: 1, rpcUrls: { default: { http: [] } } });
  /** Signs what it is given without a service, on a node that counts no transaction. */
  const open = async () => {
    const runAction = async ({ js_params }: { js_params?: { message?: string; transaction?: TransactionLike } }) => {
      const { message, transaction } = js_params ?? {};
      const response =
        transaction === undefined
          ? await wallet.signMessage(message ?? "")
          : await wallet.signTransaction(Transaction.from(transaction));
      return { has_error: false, response };
    };
    const answers: Record<string, string> = { eth_chainId: "0x1", eth_sendRawTransaction: `0x${"5e".repeat(32)}` };
    const request = async ({ method }: { method: string }) => answers[method] ?? "0x0";
    const provider = keywrightProvider({
      client: { runAction } as never,
      pkpIds: [pkp],
      chains: [chain],
      transports: { 1: custom({ request }) },
    });
    await provider.request({ method: "eth_requestAccounts" });
    return provider;
  };

  it("takes proxies of plain data, as frameworks of pages make them, and copies them", async () => {
    const params = new Proxy(["hello", pkp], {});
    expect(() => structuredClone(params)).to.throw();
    const signature = await (await open()).request({ method: "personal_sign", params });
    expect(verifyMessage("hello", String(signature))).to.equal(pkp);
  });

  it("counts what it sent until the node must have, so that a transaction that was dropped leaves no gap", async () => {
    const provider = await open();
    const fees = { gas: "0x5208", maxFeePerGas: "0x2", maxPriorityFeePerGas: "0x1" };
    const params = [{ from: pkp, to: TO, value: "0x1", ...fees, type: "eip1559" }];
    const nextNonce = async () =>
      Transaction.from(String(await provider.request({ method: "eth_signTransaction", params }))).nonce;
    await provider.request({ method: "eth_sendTransaction", params });
    expect(await nextNonce()).to.equal(1);
    const now = Date.now;
    try {
      Date.now = () => now() + 61_000;
      expect(await nextNonce()).to.equal(0);
    } finally {
      Date.now = now;
    }
  });
});
