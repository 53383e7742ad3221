/**
 * A PKP as an ethers signer and as a viem account: real transactions on the chain, checked by both libraries' own
 * verification.
 */
import { expect } from "chai";
import {
  Contract,
  ContractFactory,
  Transaction,
  Wallet,
  getBytes,
  hexlify,
  parseEther,
  randomBytes,
  recoverAddress,
  verifyAuthorization,
  verifyMessage,
  verifyTypedData,
  type JsonRpcProvider,
} from "ethers";
import {
  createPublicClient,
  createWalletClient,
  defineChain,
  http,
  nonceManager,
  recoverTransactionAddress,
  verifyMessage as viemVerifyMessage,
  verifyTypedData as viemVerifyTypedData,
  type Hex,
  type LocalAccount,
} from "viem";
import { recoverAuthorizationAddress } from "viem/utils";
import { ClientError, type Client } from "../../../client";
import { type KeywrightSigner, keywrightSigner } from "../../../client/ethers";
import { STANDARD_ACTIONS } from "../../../client/standardActions";
import { toKeywrightAccount } from "../../../client/viem";
import { actionHashOf, type Cid } from "../../../protocol/ids";
import { connect, fundedWallet } from "../../support/chain";
import { makeAccount, makeUsageKey } from "../../support/journey";
import { deploySafe } from "../../support/safe";
import { useStack } from "../../support/stack";

const DOMAIN = {
  name: "Orders",
  version: "1",
  chainId: 31337,
  verifyingContract: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
} as const;
const TYPES = {
  Order: [
    { name: "maker", type: "Person" },
    { name: "amounts", type: "uint256[]" },
  ],
  Person: [
    { name: "wallet", type: "address" },
    { name: "memo", type: "bytes" },
  ],
} as const;
const ORDER = { maker: { wallet: DOMAIN.verifyingContract, memo: "0x00ff" }, amounts: [1n, 2n ** 200n] } as const;
/**
 * A contract in byte code, so that the test needs no compiler: with an argument it stores it in slot 0, without one it
 * returns it.
 */
const STORE_RUNTIME = "36600410600f57" + "5f545f5260205ff3" + "5b6004355f5500";
const STORE = {
  abi: ["function set(uint256)", "function get() view returns (uint256)"],
  bytecode: `0x6016600a5f3960165ff3${STORE_RUNTIME}`,
};

const MUTABLE_TYPES = { Order: [...TYPES.Order], Person: [...TYPES.Person] };

describe("a PKP as an account", function () {
  this.timeout(60_000);
  const stack = useStack();
  let provider: JsonRpcProvider;
  let bot: Client;
  let pkp: string;
  let signer: KeywrightSigner;
  let account: LocalAccount;
  let delegate: string;

  before(async () => {
    const { baseUrl, rpcUrl } = stack();
    provider = connect(rpcUrl);
    const { client } = await makeAccount(baseUrl);
    pkp = (await client.createWallet({})).wallet_address;
    const cids = Object.values(STANDARD_ACTIONS).map(({ cid }) => actionHashOf(cid as Cid) as string);
    const { group_id } = await client.addGroup({
      group_name: "signing",
      group_description: "",
      pkp_ids_permitted: [pkp],
      cid_hashes_permitted: cids,
    });
    bot = (await makeUsageKey(client, baseUrl, { execute_in_groups: [group_id] })).client;
    await provider.send("anvil_setBalance", [pkp, `0x${parseEther("10").toString(16)}`]);
    const deployed = await new ContractFactory(STORE.abi, STORE.bytecode, await fundedWallet(provider)).deploy();
    delegate = await (await deployed.waitForDeployment()).getAddress();
    signer = keywrightSigner({ client: bot, pkpId: pkp, provider });
    account = toKeywrightAccount({ client: bot, pkpId: pkp.toLowerCase() });
  });
  after(() => provider?.destroy());

  it("signs the largest initcode, and 40 kB of bytes", async () => {
    const data: Hex = `0x${"fe".repeat(49_152)}`;
    const fields = { chainId: 31337, nonce: 0, gas: 15_000_000n, maxFeePerGas: 1n, maxPriorityFeePerGas: 1n };
    const { gas, ...rest } = fields;
    const raw = await signer.signTransaction({ ...rest, type: 2, gasLimit: gas, data });
    expect(Transaction.from(raw)).to.include({ from: pkp, data });
    const same = await account.signTransaction({ ...fields, type: "eip1559", data });
    expect(Transaction.from(same)).to.include({ from: pkp, data });
    const bytes = new Uint8Array(40_000).fill(0xfe);
    expect(verifyMessage(bytes, await signer.signMessage(bytes))).to.equal(pkp);
    expect(verifyMessage(bytes, await account.signMessage({ message: { raw: bytes } }))).to.equal(pkp);
  });

  describe("of ethers", () => {
    it("signs messages: text, text with a byte order mark, and bytes that are not UTF-8", async () => {
      expect(await signer.getAddress()).to.equal(pkp);
      const bytes = randomBytes(31);
      for (const message of ["hello", "", "ünïcode €", "\ufeffmarked", bytes, new Uint8Array([0xff, 0xfe, 0x00])]) {
        expect(verifyMessage(message, await signer.signMessage(message))).to.equal(pkp);
      }
    });

    it("signs typed data with nested types, large numbers and bytes", async () => {
      const signature = await signer.signTypedData(DOMAIN, MUTABLE_TYPES, { ...ORDER, amounts: [...ORDER.amounts] });
      expect(verifyTypedData(DOMAIN, MUTABLE_TYPES, ORDER, signature)).to.equal(pkp);
    });

    it("sends transactions of types 0, 1 and 2, populated by its provider", async () => {
      const to = Wallet.createRandom().address;
      for (const fields of [
        { type: 0 },
        { type: 1, accessList: [{ address: to, storageKeys: [] }] },
        { type: 2 },
        {},
      ]) {
        const sent = await signer.sendTransaction({ to, value: 7n, ...fields });
        const receipt = await sent.wait();
        expect([receipt?.status, receipt?.from, sent.type]).to.deep.equal([1, pkp, fields.type ?? 2]);
      }
      expect(await provider.getBalance(to)).to.equal(28n);
    });

    it("deploys a contract and calls it", async () => {
      const { abi, bytecode } = STORE;
      const contract = await new ContractFactory(abi, bytecode, signer).deploy();
      await contract.waitForDeployment();
      const counted = new Contract(await contract.getAddress(), abi, signer);
      await (await counted.getFunction("set").send(42n)).wait();
      expect(await counted.getFunction("get").staticCall()).to.equal(42n);
    });

    it("signs digests, authorizations, and type 4 transactions that carry them", async () => {
      const digest = hexlify(randomBytes(32));
      expect(recoverAddress(digest, await signer.signDigest(digest))).to.equal(pkp);
      const authorization = await signer.authorize({
        address: delegate,
        chainId: 31337n,
        nonce: (await signer.getNonce()) + 1,
      });
      expect(verifyAuthorization(authorization, authorization.signature)).to.equal(pkp);
      const sent = await signer.sendTransaction({ type: 4, to: pkp, authorizationList: [authorization] });
      expect((await sent.wait())?.status).to.equal(1);
      expect(await provider.getCode(pkp)).to.equal(`0xef0100${delegate.slice(2).toLowerCase()}`);
      const back = await signer.authorize({ address: `0x${"00".repeat(20)}`, nonce: (await signer.getNonce()) + 1 });
      await (await signer.sendTransaction({ type: 4, to: pkp, authorizationList: [back] })).wait();
      expect(await provider.getCode(pkp)).to.equal("0x");
    });

    it("owns a Safe alone, and as one of two owners", async () => {
      const other = Wallet.createRandom().connect(provider);
      const to = Wallet.createRandom().address;
      for (const owners of [[signer], [signer, other]]) {
        const safe = await deploySafe(await fundedWallet(provider), owners, owners.length);
        await provider.send("anvil_setBalance", [safe.address, "0xff"]);
        await safe.execute([{ to, value: "5", data: "0x" }]);
      }
      expect(await provider.getBalance(to)).to.equal(10n);
    });

    it("works offline without a provider, and can be connected to another one", async () => {
      const offline = keywrightSigner({ client: bot, pkpId: pkp });
      expect(offline.provider).to.equal(null);
      const raw = await offline.signTransaction({
        type: 2,
        chainId: 1,
        nonce: 0,
        gasLimit: 21_000,
        to: pkp,
        maxFeePerGas: 1n,
        maxPriorityFeePerGas: 1n,
      });
      expect(Transaction.from(raw).from).to.equal(pkp);
      expect(offline.connect(provider).provider).to.equal(provider);
    });
  });

  describe("of viem", () => {
    const chain = (url: string) =>
      defineChain({
        id: 31337,
        name: "test",
        nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
        rpcUrls: { default: { http: [url] } },
      });

    it("signs messages and typed data, omitting types that are not referenced", async () => {
      const address = account.address;
      for (const message of ["hello €", { raw: "0xfffe00" as Hex }, { raw: getBytes("0x68656c6c6f") }])
        expect(
          await viemVerifyMessage({ address, message, signature: await account.signMessage({ message }) }),
        ).to.equal(true);
      const typed = {
        domain: DOMAIN,
        types: { ...TYPES, Unused: [{ name: "x", type: "uint8" }] },
        primaryType: "Order",
        message: ORDER,
      } as const;
      expect(await viemVerifyTypedData({ address, ...typed, signature: await account.signTypedData(typed) })).to.equal(
        true,
      );
    });

    it("sends transactions of types 0, 1 and 2", async () => {
      const { rpcUrl } = stack();
      const wallet = createWalletClient({ account, chain: chain(rpcUrl), transport: http(rpcUrl) });
      const reader = createPublicClient({ chain: chain(rpcUrl), transport: http(rpcUrl), pollingInterval: 50 });
      const to = Wallet.createRandom().address as Hex;
      for (const fields of [
        { type: "legacy" },
        { type: "eip2930", accessList: [{ address: to, storageKeys: [`0x${"00".repeat(32)}`] }] },
        { type: "eip1559" },
        {},
      ] as const) {
        const hash = await wallet.sendTransaction({ to, value: 3n, ...fields } as Parameters<
          typeof wallet.sendTransaction
        >[0]);
        const receipt = await reader.waitForTransactionReceipt({ hash });
        expect([receipt.status, receipt.from]).to.deep.equal(["success", pkp.toLowerCase()]);
      }
      expect(await reader.getBalance({ address: to })).to.equal(12n);
    });

    it("sends transactions at the same time where viem's nonce manager counts", async () => {
      const { rpcUrl } = stack();
      const counting = toKeywrightAccount({ client: bot, pkpId: pkp, nonceManager });
      const wallet = createWalletClient({ account: counting, chain: chain(rpcUrl), transport: http(rpcUrl) });
      const reader = createPublicClient({ chain: chain(rpcUrl), transport: http(rpcUrl), pollingInterval: 50 });
      const to = Wallet.createRandom().address as Hex;
      const hashes = await Promise.all([1n, 2n, 4n].map((value) => wallet.sendTransaction({ to, value })));
      for (const hash of hashes) await reader.waitForTransactionReceipt({ hash });
      expect(await reader.getBalance({ address: to })).to.equal(7n);
    });

    it("signs authorizations, and sends type 4 transactions that carry them", async () => {
      const { rpcUrl } = stack();
      const wallet = createWalletClient({ account, chain: chain(rpcUrl), transport: http(rpcUrl) });
      const reader = createPublicClient({ chain: chain(rpcUrl), transport: http(rpcUrl), pollingInterval: 50 });
      const authorization = await wallet.signAuthorization({ contractAddress: delegate as Hex, executor: "self" });
      expect(await recoverAuthorizationAddress({ authorization })).to.equal(pkp);
      const hash = await wallet.sendTransaction({ authorizationList: [authorization], to: account.address });
      await reader.waitForTransactionReceipt({ hash });
      expect(await reader.getCode({ address: account.address })).to.equal(`0xef0100${delegate.slice(2).toLowerCase()}`);
    });

    it("signs a digest, and a transaction without sending it", async () => {
      const hash = hexlify(randomBytes(32)) as Hex;
      expect(recoverAddress(hash, (await account.sign?.({ hash })) ?? "")).to.equal(pkp);
      const serializedTransaction = await account.signTransaction({
        type: "eip1559",
        chainId: 1,
        nonce: 1,
        gas: 21_000n,
        to: account.address,
        maxFeePerGas: 2n,
        maxPriorityFeePerGas: 1n,
      });
      expect(
        await recoverTransactionAddress({ serializedTransaction: serializedTransaction as `0x02${string}` }),
      ).to.equal(pkp);
    });
  });

  describe("refuses", () => {
    const codeOf = (call: Promise<unknown>): Promise<string> =>
      call.then(
        () => "signed",
        (error: unknown) => (error instanceof ClientError ? error.code : String(error)),
      );

    it("what the action refuses, with the action's own message", async () => {
      const policy = { code: `async function main() { throw new Error("not today"); }` };
      const group = keywrightSigner({
        client: {
          runAction: async () => ({
            response: null,
            logs: "",
            has_error: true,
            error: { code: "threw", message: "not today" },
            usage: { duration_ms: 1, limit_ms: 1, cost_cents: 1 },
          }),
        },
        pkpId: pkp,
        actions: { message: policy },
      });
      expect(await codeOf(group.signMessage("x"))).to.equal("signing_failed");
    });

    it("a signature of another key, over other data, or a missing one", async () => {
      const thief = Wallet.createRandom();
      const answers = [
        thief.signMessageSync("hello"),
        Wallet.createRandom().signMessageSync("other"),
        "0x",
        5,
        "0x1234",
        null,
      ];
      for (const response of answers) {
        const client = {
          runAction: async () => ({
            response,
            logs: "",
            has_error: false,
            usage: { duration_ms: 1, limit_ms: 1, cost_cents: 1 },
          }),
        };
        for (const sign of [
          keywrightSigner({ client, pkpId: pkp }),
          { signMessage: (message: string) => toKeywrightAccount({ client, pkpId: pkp }).signMessage({ message }) },
        ])
          expect(await codeOf(sign.signMessage("hello"))).to.equal("unexpected_answer");
      }
    });

    it("a signed transaction that differs from the requested one", async () => {
      const thief = new Wallet(hexlify(randomBytes(32)));
      const other = await thief.signTransaction({
        type: 2,
        chainId: 1,
        nonce: 0,
        gasLimit: 1,
        to: thief.address,
        value: 1n,
      });
      const client = {
        runAction: async () => ({
          response: other,
          logs: "",
          has_error: false,
          usage: { duration_ms: 1, limit_ms: 1, cost_cents: 1 },
        }),
      };
      const asked = { type: 2, chainId: 1, nonce: 0, gasLimit: 1, to: pkp, value: 1n } as const;
      expect(await codeOf(keywrightSigner({ client, pkpId: thief.address }).signTransaction(asked))).to.equal(
        "unexpected_answer",
      );
      const viemAsked = { type: "eip1559", chainId: 1, nonce: 0, gas: 1n, to: account.address, value: 1n } as const;
      expect(await codeOf(toKeywrightAccount({ client, pkpId: thief.address }).signTransaction(viemAsked))).to.equal(
        "unexpected_answer",
      );
    });

    it("an authorization for every chain, another sender, and a PKP that is not an address", async () => {
      expect(
        await codeOf(
          keywrightSigner({ client: bot, pkpId: pkp }).signTransaction({
            type: 0,
            nonce: 0,
            gasLimit: 1,
            gasPrice: 1,
            to: pkp,
          }),
        ),
      ).to.equal("invalid_argument");
      expect(await codeOf(signer.signTransaction({ from: Wallet.createRandom().address, to: pkp }))).to.equal(
        "invalid_argument",
      );
      expect(() => keywrightSigner({ client: bot, pkpId: "1" })).to.throw(ClientError);
      expect(() => toKeywrightAccount({ client: bot, pkpId: "1" })).to.throw(ClientError);
    });
  });
});
