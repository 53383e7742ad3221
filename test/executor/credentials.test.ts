/**
 * What the executor mints and which credentials it accepts: signed envelopes and identity tokens of a test provider,
 * over a real chain.
 */
import { expect } from "chai";
import { SignJWT, exportJWK, generateKeyPair, type CryptoKey } from "jose";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Wallet, computeAddress, keccak256, verifyMessage } from "ethers";
import type { Credential } from "../../protocol/executor";
import { TestChain, TestExecutor, mined, registerPayers, sendAsPayer } from "../support/executor";
import { envelope } from "../support/typedData";

const SIGN = `async function main({ pkpId }) { return await Actions.signMessage({ pkpId, message: "hi" }); }`;

describe("credentials", function () {
  this.timeout(60_000);
  let chain: TestChain;
  let executor: TestExecutor;
  let provider: Server;
  let signingKey: CryptoKey;
  const issuer = "https://identity.example";

  before(async () => {
    const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
    signingKey = privateKey as CryptoKey;
    const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "one", alg: "ES256" }] });
    provider = createServer((_request, response) => response.setHeader("content-type", "application/json").end(jwks));
    await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
    const jwksUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/jwks`;
    chain = await TestChain.start();
    executor = await TestExecutor.start(chain, {
      IDENTITY_ISSUERS: JSON.stringify([{ issuer, jwksUrl, audience: "keywright" }]),
    });
    await registerPayers(chain, executor);
  });
  after(async () => {
    await executor?.stop();
    await chain?.stop();
    provider?.close();
  });
  const token = (subject: string): Promise<string> =>
    new SignJWT({})
      .setProtectedHeader({ alg: "ES256", kid: "one" })
      .setIssuer(issuer)
      .setAudience("keywright")
      .setSubject(subject)
      .setIssuedAt()
      .setExpirationTime("5m")
      .sign(signingKey);

  it("a minted account key is a fresh wallet's secret, identified by the hash of its text", async () => {
    const [first, second] = [await executor.call("mintAccountKey", {}), await executor.call("mintAccountKey", {})];
    expect(first.apiKey).to.match(/^[A-Za-z0-9+/]{43}=$/);
    expect(first.apiKeyHash).to.equal(keccak256(Buffer.from(first.apiKey)));
    expect(computeAddress(`0x${Buffer.from(first.apiKey, "base64").toString("hex")}`)).to.equal(first.walletAddress);
    expect(second.apiKey).to.not.equal(first.apiKey);
  });

  it("a signed mint is for the signer's own account unless it names another; a replay mints another key", async () => {
    const wallet = Wallet.createRandom();
    const request = await envelope(wallet, "CreateWallet");
    const [first, replayed] = [
      await executor.call("mintPkpWithSignature", request),
      await executor.call("mintPkpWithSignature", request),
    ];
    expect(first.derivationPath.slice(0, 4)).to.equal("0x01");
    expect(first.derivationPath.slice(34)).to.equal(keccak256(wallet.address).slice(34));
    expect(replayed.walletAddress).to.not.equal(first.walletAddress);
    const accountId = `0x${"AB".repeat(32)}`;
    const named = await executor.call("mintPkpWithSignature", { ...request, accountId });
    expect(named.derivationPath.slice(34)).to.equal("ab".repeat(16));
  });

  it("a signed mint accepts only its own type of envelope, by its own signer", async () => {
    const wallet = Wallet.createRandom();
    const create = await envelope(wallet, "CreateWallet");
    const addKey = await envelope(wallet, "AddUsageApiKey");
    expect(await executor.codeOf("mintUsageKeyWithSignature", create)).to.equal("typed_data_wrong_primary_type");
    expect(await executor.codeOf("mintPkpWithSignature", addKey)).to.equal("typed_data_wrong_primary_type");
    expect(await executor.codeOf("mintPkpWithSignature", { ...create, signature: addKey.signature })).to.equal(
      "signature_mismatch",
    );
  });

  it("a ChainSecured owner mints a PKP and a usage key, attaches both, and the key runs", async () => {
    const owner = await chain.wallet();
    const asOwner = chain.contract.connect(owner);
    const id = keccak256(owner.address);
    await mined(asOwner.newChainSecuredAccount("own", ""));
    const pkp = await executor.call("mintPkpWithSignature", await envelope(owner, "CreateWallet"));
    const key = await executor.call("mintUsageKeyWithSignature", await envelope(owner, "AddUsageApiKey"));
    expect(key.derivationPath.slice(0, 4)).to.equal("0x02");
    await mined(asOwner.registerWalletDerivation(id, pkp.walletAddress, pkp.derivationPath, "", ""));
    await mined(asOwner.registerWalletDerivation(id, key.walletAddress, key.derivationPath, "", ""));
    await mined(asOwner.addGroup(id, "g", "", [0], [pkp.walletAddress]));
    expect((await executor.run(key.usageApiKey, SIGN, { pkpId: pkp.walletAddress })).refusal?.code).to.equal(
      "unknown_key",
    );
    await mined(asOwner.setUsageApiKey(id, key.apiKeyHash, 0, 0, "k", "", false, false, false, [], [], [], [1]));
    const { answer } = await executor.run(key.usageApiKey, SIGN, { pkpId: pkp.walletAddress });
    expect(verifyMessage("hi", JSON.parse(answer?.response ?? ""))).to.equal(pkp.walletAddress);
    const asPkp = await executor.run(key.usageApiKey, SIGN, { pkpId: key.walletAddress });
    expect(asPkp.answer?.error?.code).to.equal("permission_denied");
  });

  it("an identity token creates its owner's account, writes to it and runs in it, and in no other", async () => {
    const ann = await token("ann");
    const credential: Credential = { type: "identity", token: ann };
    const { walletAddress, accountId } = await executor.call("ownerWallet", { token: ann });
    expect(accountId).to.equal(keccak256(walletAddress));
    expect(await executor.call("ownerWallet", { token: await token("ann") })).to.deep.equal({
      walletAddress,
      accountId,
    });
    const write = async (functionName: string, args: string[] | unknown[], who = credential): Promise<string> => {
      const { answer, refusal } = await executor.ask("authorizeWrites", {
        writes: [{ credential: who, write: { functionName, args } }],
      });
      const authorized = answer?.writes[0];
      if (authorized === undefined) return refusal?.code ?? "";
      if ("refused" in authorized) return authorized.refused.code;
      await sendAsPayer(chain, executor, authorized.calldata, authorized.tag);
      return "written";
    };
    expect(await write("newAccount", [accountId, true, "ann's", "", walletAddress])).to.equal("written");
    expect(await write("addGroup", [accountId, "g", "", ["0"], []])).to.equal("written");
    expect(
      await write("addGroup", [accountId, "g", "", [], []], { type: "identity", token: await token("bob") }),
    ).to.equal("not_authorized");
    const run = (who: Credential): ReturnType<typeof executor.ask<"run">> =>
      executor.ask("run", {
        credential: who,
        code: "async function main() { return 1; }",
        params: "{}",
        limitMs: 5_000,
      });
    expect((await run(credential)).answer?.response).to.equal("1");
    expect((await run({ type: "identity", token: await token("bob") })).refusal?.code).to.equal("unknown_key");
    const safe = await chain.wallet();
    expect(await write("transferOwnership", [accountId, safe.address])).to.equal("written");
    expect((await run(credential)).refusal?.code).to.equal("account_chain_secured");
  });

  it("an identity token of another issuer, or a forged one, is rejected", async () => {
    const stranger = await generateKeyPair("ES256");
    const forged = await new SignJWT({})
      .setProtectedHeader({ alg: "ES256", kid: "one" })
      .setIssuer(issuer)
      .setAudience("keywright")
      .setSubject("ann")
      .setIssuedAt()
      .setExpirationTime("5m")
      .sign(stranger.privateKey);
    expect(await executor.codeOf("ownerWallet", { token: forged })).to.equal("invalid_identity_token");
    expect(await executor.codeOf("ownerWallet", { token: "nonsense" })).to.equal("invalid_identity_token");
  });
});
