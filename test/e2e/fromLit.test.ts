/**
 * Public actions in the old form through `POST /core/v1/lit_action`, written anew to do the same as the files that
 * docs/from-lit.md names: what they signed is the PKP's, and the answers have the old shapes.
 */
import { expect } from "chai";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { JsonRpcProvider, computeAddress, getBytes, id, recoverAddress, verifyMessage } from "ethers";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { makeAccount, type TestAccount } from "../support/journey";
import { must } from "../support/must";

interface Signature {
  readonly r: string;
  readonly s: string;
  readonly recid: number;
  readonly signature: string;
  readonly dataSigned?: string;
}
interface Answer {
  readonly response: unknown;
  readonly logs: string;
  readonly has_error: boolean;
  readonly error?: { readonly message: string };
  readonly signatures?: Readonly<Record<string, Signature>>;
}
interface Case {
  readonly code: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly check: (answer: Answer, pkp: string) => void;
}

const JSON_TYPE = { "content-type": "application/json" };
/** Of the development chain. */
const DEPLOYER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const DIGEST = id("hello");
const isSigned = ({ signatures }: Answer, pkp: string): void => {
  const { r, s, recid, signature, dataSigned } = must(signatures?.["sig1"]);
  expect(recoverAddress(DIGEST, signature)).to.equal(pkp);
  expect(recoverAddress(`0x${dataSigned}`, { r: `0x${r}`, s: `0x${s}`, v: 27 + recid })).to.equal(pkp);
};
const answers =
  (response: unknown) =>
  ({ response: given }: Answer): void =>
    void expect(given).to.deep.equal(response);

/** By file, as docs/from-lit.md names them. `WEATHER` stands for the address of a weather service. */
const CASES: Readonly<Record<string, Case>> = {
  "js-sdkTests/helloworld.js": {
    code: `const go = async () => {
      const share = await LitActions.signEcdsa({ toSign, publicKey, sigName });
      LitActions.setResponse({ response: JSON.stringify({ share }) });
    };
    go();`,
    check: (answer, pkp) => {
      isSigned(answer, pkp);
      answers({ share: "success" })(answer);
    },
  },
  "js-sdkTests/signMsgAndCheckRecovery.js": {
    code: `const go = async () => { await LitActions.signEcdsa({ toSign, publicKey, sigName }); }; go();`,
    check: isSigned,
  },
  "ipfsCode/ecdsaSign.js": {
    code: `const go = async () => { const share = await LitActions.signEcdsa({ toSign, publicKey, sigName }) };\ngo();`,
    check: isSigned,
  },
  "js-sdkTests/personalSign.js": {
    code: `const go = async () => {
      await LitActions.ethPersonalSignMessageEcdsa({ message: "Hello World", publicKey, sigName: "sig1" });
    };
    go();`,
    check: ({ signatures }, pkp) =>
      expect(verifyMessage("Hello World", must(signatures?.["sig1"]).signature)).to.equal(pkp),
  },
  "signAndCombine.js": {
    code: `const go = async () => {
      const made = JSON.parse(await Lit.Actions.signAndCombineEcdsa({ toSign, publicKey, sigName }));
      const joined = ethers.utils.joinSignature({ r: "0x" + made.r.substring(2), s: "0x" + made.s, v: made.v });
      Lit.Actions.setResponse({ response: joined });
    };
    go();`,
    check: ({ response }, pkp) => expect(recoverAddress(DIGEST, String(response))).to.equal(pkp),
  },
  "js-sdkTests/signTxn.js": {
    code: `const txParams = { nonce: "0x0", gasPrice: "0x2e90edd000", gasLimit: "0x7530", value: "0x00", chainId: 80001,
      to: "0x50e2dac5e78B5905CB09495547452cEE64426db2" };
    const go = async () => {
      const hash = ethers.utils.keccak256(ethers.utils.serializeTransaction(txParams));
      await Lit.Actions.signEcdsa({ toSign: ethers.utils.arrayify(hash), publicKey, sigName });
      Lit.Actions.setResponse({ response: JSON.stringify({ txParams }) });
    };
    go();`,
    check: ({ response, signatures }, pkp) => {
      expect((response as { txParams: { chainId: number } }).txParams.chainId).to.equal(80_001);
      const { signature, dataSigned } = must(signatures?.["sig1"]);
      expect(recoverAddress(`0x${dataSigned}`, signature)).to.equal(pkp);
    },
  },
  "js-sdkTests/fetch.js": {
    code: `const go = async () => {
      const { properties } = await fetch("WEATHER").then((response) => response.json());
      if (properties.periods[0].temperature < 60) return;
      await LitActions.signEcdsa({ toSign, publicKey, sigName });
    };
    go();`,
    check: isSigned,
  },
  "js-sdkTests/justFetch.js": {
    code: `const go = async () => {
      const answer = await fetch("WEATHER").then((response) => response.json());
      LitActions.setResponse({ response: JSON.stringify(answer) });
    };
    go();`,
    check: answers({ properties: { periods: [{ temperature: 61 }] } }),
  },
  "js-sdkTests/simpleConsole.js": {
    code: `const go = async () => { console.log("hello", 1) }; go();`,
    check: ({ logs }) => expect(logs.trim()).to.equal("hello 1"),
  },
  "js-sdkTests/simpleResponse.js": {
    code: `LitActions.setResponse({ response: JSON.stringify({ hello: "world" }) });`,
    check: answers({ hello: "world" }),
  },
  "js-sdkTests/getLatestNonce.js": {
    params: { address: DEPLOYER },
    code: `const go = async () => {
      const nonce = await LitActions.getLatestNonce({ address, chain: "local" });
      LitActions.setResponse({ response: JSON.stringify({ nonce }) });
    };
    go();`,
    check: ({ response }) => expect(Number((response as { nonce: string }).nonce)).to.be.above(0),
  },
  "js-sdkTests/ethers.js": {
    code: `const go = async () => {
      LitActions.setResponse({ response: JSON.stringify({ val: ethers.utils.formatEther(10000) }) });
    };
    go();`,
    check: answers({ val: "0.00000000000001" }),
  },
  "js-sdkTests/params.js": {
    params: { aString: "meow", anInt: 42, aFloat: 123.456, anArray: [1, 2], anObject: { x: "a" } },
    code: `if (aString === "meow" && anInt === 42 && aFloat === 123.456 && anArray[1] === 2 && anObject.x === "a")
      (async () => { await LitActions.signEcdsa({ toSign, publicKey, sigName: "sig1" }) })();`,
    check: isSigned,
  },
  "ipfsCode/checkWeather.js": {
    code: `const go = async (maxTemp) => {
      try {
        const { properties } = await fetch("WEATHER").then((res) => res.json());
        return properties.periods[0].temperature < parseInt(maxTemp);
      } catch (e) { console.log(e); }
      return false;
    };
    go("70").then((isBelow) => LitActions.setResponse({ response: JSON.stringify({ isBelow }) }));`,
    check: answers({ isBelow: true }),
  },
  "workflows/getValueOnceAndSignIt.js": {
    code: `let temperature = await Lit.Actions.runOnce({ waitForResponse: true }, async () => {
      const resp = await fetch("WEATHER").then((response) => response.json());
      return resp.properties.periods[0].temperature;
    });
    const sigShare = await Lit.Actions.signEcdsa({ toSign, publicKey, sigName });`,
    check: isSigned,
  },
};

describe("public actions in Lit's old form", function () {
  this.timeout(60_000);
  /** Also the way to the node, at the address that actions are told. */
  let weather: Server;
  let rpcUrl: string;
  let stack: Stack;
  let account: TestAccount;
  let group: string;
  let pkp: string;
  let publicKey: string;

  before(async function () {
    this.timeout(120_000);
    const forecast = JSON.stringify({ properties: { periods: [{ temperature: 61 }] } });
    weather = createServer((request, answer) => {
      answer.setHeader("content-type", "application/json");
      if (request.method === "GET") return answer.end(forecast);
      void fetch(stack.rpcUrl, { method: "POST", headers: JSON_TYPE, body: Readable.toWeb(request), duplex: "half" })
        .then((answered) => answered.text())
        .then((text) => answer.end(text));
    });
    await new Promise<void>((listening) => weather.listen(0, "127.0.0.1", listening));
    const address = `127.0.0.1:${(weather.address() as AddressInfo).port}`;
    for (const one of Object.values(CASES))
      Object.assign(one, { code: one.code.replace("WEATHER", `http://${address}`) });
    rpcUrl = `http://${address}/rpc`;
    stack = await startStack({ env: { FETCH_ALLOW_HOSTS: address, ACTION_RPC_URLS: `local=${rpcUrl}` } });
    account = await makeAccount(stack.baseUrl);
    const { client } = account;
    pkp = (await client.createWallet({})).wallet_address;
    ({ group_id: group } = await client.addGroup({
      group_name: "old",
      group_description: "",
      pkp_ids_permitted: [pkp],
    }));
    const cids = await Promise.all(Object.values(CASES).map(({ code }) => client.getActionIpfsId(code)));
    await client.changeGroupActions({ id: group, add: cids, remove: [] });
    const { keys } = await client.publicKeys({ pkp_id: pkp });
    publicKey = must(keys.find(({ curve }) => curve === "secp256k1")).public_key;
    expect(computeAddress(publicKey)).to.equal(pkp);
  });
  after(async () => {
    weather?.close();
    await stack?.stop();
  });

  async function post(body: object): Promise<{ status: number; answer: Answer }> {
    const answer = await fetch(`${stack.baseUrl}/core/v1/lit_action`, {
      method: "POST",
      headers: { "x-api-key": account.apiKey, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: answer.status, answer: (await answer.json()) as Answer };
  }
  const run = (code: string, params: object = {}) =>
    post({ code, js_params: { toSign: [...getBytes(DIGEST)], publicKey, sigName: "sig1", ...params } });

  const runListed = async (code: string, params?: object) => {
    const cid = await account.client.getActionIpfsId(code);
    await account.client.changeGroupActions({ id: group, add: [cid], remove: [] });
    return run(code, params);
  };

  for (const [file, { params, check }] of Object.entries(CASES))
    it(file, async () => {
      const { answer } = await run(must(CASES[file]).code, params);
      expect(answer.has_error, JSON.stringify(answer)).to.equal(false);
      check(answer, pkp);
    });

  it("ask the chains that the operator names, by both versions of ethers", async () => {
    const to = stack.contractAddress;
    const data = id("trustedForwarder()").slice(0, 10);
    const sent = new JsonRpcProvider(stack.rpcUrl, undefined, { staticNetwork: true });
    const expected = await sent.call({ to, data });
    for (const [actions, txn] of [
      ["LitActions", "ethers.utils.serializeTransaction({ to, data })"],
      ["Actions", "ethers.Transaction.from({ to, data, chainId: 1 }).unsignedSerialized"],
    ]) {
      const { answer } = await runListed(
        `async function main({ to, data }) {
           const txn = ${txn};
           const result = await ${actions}.callContract({ chain: "local", txn });
           return [await ${actions}.getRpcUrl({ chain: "local" }), result];
         }`,
        { to, data },
      );
      expect(answer.response, JSON.stringify(answer)).to.deep.equal([rpcUrl, expected]);
    }
    sent.destroy();
    const { answer } = await runListed(`async function main() { return LitActions.getRpcUrl({ chain: "base" }); }`);
    expect(answer.error?.message).to.include("it names local");
  });

  it("can see in the config document whom they ask, and no key that an address may have in it", async () => {
    const { config } = (await (await fetch(`${stack.baseUrl}/info`)).json()) as {
      config: { action_rpc_hosts?: Record<string, string> };
    };
    expect(config.action_rpc_hosts).to.deep.equal({ local: new URL(rpcUrl).host });
    expect(JSON.stringify(config)).to.not.include(rpcUrl);
  });

  it("are all those that the page calls unchanged", () => {
    const page = readFileSync(join(__dirname, "..", "..", "docs", "from-lit.md"), "utf8");
    const rows = [...page.matchAll(/^\| (`\S+\.js`.*?) \| .*? \| unchanged/gm)].map(([, files = ""]) => files);
    const named = rows.flatMap((files) => [...files.matchAll(/`(\S+?)`/g)].map(([, file]) => file));
    expect(named.sort()).to.deep.equal(Object.keys(CASES).sort());
    expect(named.length).to.be.at.least(12);
  });

  it("take the key without 0x or as an address, and sign for no key of others", async () => {
    const { code } = must(CASES["signAndCombine.js"]);
    for (const named of [publicKey.slice(2), pkp, pkp.slice(2)]) {
      const { answer } = await run(code, { publicKey: named });
      expect(recoverAddress(DIGEST, String(answer.response))).to.equal(pkp);
    }
    const { answer } = await run(code, { publicKey: `0x02${"11".repeat(32)}` });
    expect([answer.has_error, answer.response, answer.signatures]).to.deep.equal([true, null, undefined]);
  });

  it("are taken with what their programs send along, which the route's own name refuses", async () => {
    const { code } = must(CASES["js-sdkTests/simpleResponse.js"]);
    const sent = {
      ["__proto__"]: { code: 1 },
      constructor: 1,
      code,
      ipfs_id: null,
      authSig: {},
      numNodes: 3,
      js_params: null,
      pkp_id: pkp.slice(2).toLowerCase(),
    };
    const { status, answer } = await post(sent);
    expect([status, answer.response]).to.deep.equal([200, { hello: "world" }]);
    const headers = { "x-api-key": account.apiKey, "content-type": "application/json" };
    const own = { method: "POST", headers, body: JSON.stringify(sent) };
    const refused = await fetch(`${stack.baseUrl}/core/v1/run_action`, own);
    expect([refused.status, ((await refused.json()) as { code: string }).code]).to.deep.equal([422, "invalid_body"]);
  });

  it("find the service's settings under the names that their programs ask for", async () => {
    const get = async (path: string) =>
      (await (await fetch(`${stack.baseUrl}${path}`)).json()) as Record<string, unknown>;
    const config = await get("/core/v1/get_lit_action_client_config");
    const { run: limits } = (await get("/core/v1/limits")) as { run: Record<string, number> };
    expect(config, JSON.stringify(config)).to.include({
      timeout_ms: limits["wallMs"],
      memory_limit_mb: limits["heapMiB"],
      max_fetch_count: 50,
    });
    expect(await get("/core/v1/get_chain_config_keys")).to.deep.equal({ keys: Object.keys(limits) });
    for (const path of ["/version", "/core/v1/version"])
      expect(await get(path)).to.include({ name: "keywright", version: "0.1.0" });
    expect(await get("/openapi.json")).to.deep.equal(await get("/core/v1/openapi.json"));
    for (const path of ["/info", "/attestation"])
      expect(Object.keys(await get(`/dstack/v1${path}`))).to.deep.equal(Object.keys(await get(path)));
  });
});
