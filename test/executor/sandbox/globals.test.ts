import { expect } from "chai";
import { constants, createHash, createHmac, generateKeyPairSync, sign, webcrypto, type KeyObject } from "node:crypto";
import { runInNewContext } from "node:vm";
import { ethers } from "ethers";
import { run, valueOf } from "../../support/sandbox";
import { defined } from "../../../protocol/defined";

describe("globals of an action", () => {
  const checks: Record<string, [expression: string, value: unknown]> = {
    URL: [
      `(() => { const url = new URL("../x?a=1#h", "https://user@EXAMPLE.com:443/a/b/"); url.searchParams.append("b", "ä&"); return [url.href, url.origin, url.port]; })()`,
      ["https://user@example.com/a/x?a=1&b=%C3%A4%26#h", "https://example.com", ""],
    ],
    URLSearchParams: [`new URLSearchParams({ a: "1 2", b: "ü" }).toString()`, "a=1+2&b=%C3%BC"],
    "TextEncoder and TextDecoder": [`new TextDecoder().decode(new TextEncoder().encode("aé€😀"))`, "aé€😀"],
    "TextDecoder in pieces": [
      `(() => { const d = new TextDecoder(); const bytes = new TextEncoder().encode("aé€😀"); return Array.from(bytes, (byte) => d.decode(new Uint8Array([byte]), { stream: true })).join("") + d.decode(); })()`,
      "aé€😀",
    ],
    "TextDecoder, fatal": [
      `(() => { try { return new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([255])); } catch (error) { return error.name; } })()`,
      "TypeError",
    ],
    "TextEncoder.encodeInto": [
      `(() => { const into = new Uint8Array(4); return [new TextEncoder().encodeInto("a€€", into), Array.from(into)]; })()`,
      [{ read: 2, written: 4 }, [97, 226, 130, 172]],
    ],
    "atob and btoa": [
      `[btoa("\\u00ff\\u0000a"), atob("/wBh").length, (() => { try { atob("*"); } catch (e) { return "refused"; } })()]`,
      ["/wBh", 3, "refused"],
    ],
    structuredClone: [
      `(() => { const copy = structuredClone({ d: new Date(5), m: new Map([[1, new Set([2])]]), b: new Uint8Array([3]) }); return [copy.d.getTime(), [...copy.m.get(1)], copy.b[0]]; })()`,
      [5, [2], 3],
    ],
    "timers in order": [
      `await new Promise((resolve) => { const seen = []; setTimeout(() => seen.push("b"), 20); setTimeout(() => seen.push("a"), 1); clearTimeout(setTimeout(() => seen.push("never"), 5)); queueMicrotask(() => seen.push("micro")); setTimeout(() => resolve(seen), 40); })`,
      ["micro", "a", "b"],
    ],
    setInterval: [
      `await new Promise((resolve) => { let n = 0; const id = setInterval((step) => { n += step; if (n === 6) { clearInterval(id); resolve(n); } }, 1, 2); })`,
      6,
    ],
    AbortController: [
      `(() => { const c = new AbortController(); let heard = 0; c.signal.addEventListener("abort", () => heard++, { once: true }); c.signal.onabort = () => heard++; c.abort("why"); c.abort("again"); return [c.signal.aborted, c.signal.reason, heard]; })()`,
      [true, "why", 2],
    ],
    "AbortSignal.timeout": [
      `await new Promise((resolve) => { const s = AbortSignal.timeout(5); s.addEventListener("abort", () => resolve(s.reason.name)); })`,
      "TimeoutError",
    ],
    "AbortSignal.any": [
      `(() => { const c = new AbortController(); const any = AbortSignal.any([new AbortController().signal, c.signal]); c.abort(1); return any.reason; })()`,
      1,
    ],
    Headers: [
      `(() => { const h = new Headers({ "X-A": "1" }); h.append("x-a", "2"); return [h.get("X-a"), [...h.keys()]]; })()`,
      ["1, 2", ["x-a"]],
    ],
    Request: [
      `(() => { const r = new Request("https://example.com/", { method: "post", body: new URLSearchParams({ a: "b" }) }); return [r.method, r.headers.get("content-type")]; })()`,
      ["POST", "application/x-www-form-urlencoded;charset=UTF-8"],
    ],
    Response: [
      `await (async () => { const r = new Response('{"a":1}', { status: 201 }); const copy = r.clone(); return [r.ok, await r.json(), r.bodyUsed, (await copy.arrayBuffer()).byteLength, await Response.json([1]).text()]; })()`,
      [true, { a: 1 }, true, 7, "[1]"],
    ],
    "crypto.getRandomValues": [
      `(() => { const a = crypto.getRandomValues(new Uint32Array(64)); const b = crypto.getRandomValues(new Uint32Array(64)); return [new Set(a).size > 60, a.join() !== b.join()]; })()`,
      [true, true],
    ],
    "crypto.randomUUID": [
      `/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())`,
      true,
    ],
    "EventTarget, Event, CustomEvent": [
      `(() => { const t = new EventTarget(); const seen = []; t.addEventListener("x", (e) => seen.push(e.type, e.detail, e.target === t), { once: true }); t.dispatchEvent(new CustomEvent("x", { detail: 7 })); t.dispatchEvent(new Event("x")); return [seen, new AbortController().signal instanceof EventTarget]; })()`,
      [["x", 7, true], true],
    ],
    "Blob and File": [
      `await (async () => { const b = new Blob(["ab", new Uint8Array([99])], { type: "text/plain" }); const f = new File([b], "f.txt"); return [b.size, await b.slice(1).text(), f.name, await f.text(), (await new Response(b).blob()).type]; })()`,
      [3, "bc", "f.txt", "abc", "text/plain"],
    ],
    "FormData as a body": [
      `await (async () => { const form = new FormData(); form.append("a", "1"); form.append("f", new Blob(["x"]), "f.txt"); const r = new Request("https://example.com/", { method: "POST", body: form }); const text = await r.text(); return [r.headers.get("content-type").startsWith("multipart/form-data; boundary="), text.includes('name="a"'), text.includes('filename="f.txt"')]; })()`,
      [true, true, true],
    ],
    streams: [
      `await (async () => { const r = new Response("a stream"); const copy = r.clone(); const chunks = []; for await (const chunk of r.body.pipeThrough(new TextDecoderStream())) chunks.push(chunk); return [chunks.join(""), r.bodyUsed, await copy.text(), new Response(null).body]; })()`,
      ["a stream", true, "a stream", null],
    ],
    "CompressionStream and DecompressionStream": [
      `await (async () => { const all = []; for (const format of ["gzip", "deflate", "deflate-raw"]) { const packed = new Blob(["again ".repeat(1000)]).stream().pipeThrough(new CompressionStream(format)); const bytes = await new Response(packed).bytes(); const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format))).text(); all.push(bytes.length < 200, text.length); } all.push(await new Response(new Blob(["no gzip"]).stream().pipeThrough(new DecompressionStream("gzip"))).text().catch((error) => error.name)); return all; })()`,
      [true, 6000, true, 6000, true, 6000, "TypeError"],
    ],
    "TextEncoderStream keeps characters whole": [
      `await (async () => { const s = new TextEncoderStream(); const w = s.writable.getWriter(); const done = new Response(s.readable).text(); await w.write("\\ud83d"); await w.write("\\ude00!"); await w.close(); return done; })()`,
      "😀!",
    ],
    console: [`typeof console.log + typeof console.table`, "functionfunction"],
    performance: [`performance.now() >= 0`, true],
    "what is left out": [
      `[typeof eval, typeof WebAssembly, typeof SharedArrayBuffer, typeof Atomics, typeof process, typeof require]`,
      Array(6).fill("undefined"),
    ],
    globalThis: [`self === globalThis && global === globalThis`, true],
  };
  for (const [name, [expression, value]] of Object.entries(checks)) {
    it(name, async () => {
      expect(await valueOf(expression)).to.deep.equal(value);
    });
  }

  describe("crypto.subtle", () => {
    const text = "the message";
    const hex = `(buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("")`;

    for (const hash of ["SHA-1", "SHA-256", "SHA-384", "SHA-512"]) {
      it(`digest ${hash} equals Node's`, async () => {
        const expected = createHash(hash.replace("-", "").toLowerCase()).update(text).digest("hex");
        expect(
          await valueOf(`(${hex})(await crypto.subtle.digest("${hash}", new TextEncoder().encode("${text}")))`),
        ).to.equal(expected);
      });
    }

    it("HMAC equals Node's, and verifies only what was signed", async () => {
      const expected = createHmac("sha256", "key").update(text).digest("hex");
      const code = `async function main() {
        const bytes = (t) => new TextEncoder().encode(t);
        const key = await crypto.subtle.importKey("raw", bytes("key"), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
        const mac = await crypto.subtle.sign("HMAC", key, bytes("${text}"));
        return [(${hex})(mac), await crypto.subtle.verify("HMAC", key, mac, bytes("${text}")), await crypto.subtle.verify("HMAC", key, mac, bytes("other"))];
      }`;
      expect(JSON.parse((await run(code)).response)).to.deep.equal([expected, true, false]);
    });

    it("AES-GCM decrypts in another WebCrypto; a changed byte is refused", async () => {
      const code = `async function main() {
        const key = await crypto.subtle.importKey("raw", new Uint8Array(32).fill(7), "AES-GCM", false, ["encrypt", "decrypt"]);
        const options = { name: "AES-GCM", iv: new Uint8Array(12).fill(1), additionalData: new Uint8Array([9]) };
        const sealed = await crypto.subtle.encrypt(options, key, new TextEncoder().encode("${text}"));
        const opened = new TextDecoder().decode(await crypto.subtle.decrypt(options, key, sealed));
        const broken = new Uint8Array(sealed.slice(0)); broken[0] ^= 1;
        const refused = await crypto.subtle.decrypt(options, key, broken).catch(() => "refused");
        return [Array.from(new Uint8Array(sealed)), opened, refused];
      }`;
      const [sealed, opened, refused] = JSON.parse((await run(code)).response) as [number[], string, string];
      expect([opened, refused]).to.deep.equal([text, "refused"]);
      const key = await webcrypto.subtle.importKey("raw", new Uint8Array(32).fill(7), "AES-GCM", false, ["decrypt"]);
      const plain = await webcrypto.subtle.decrypt(
        { name: "AES-GCM", iv: new Uint8Array(12).fill(1), additionalData: new Uint8Array([9]) },
        key,
        new Uint8Array(sealed),
      );
      expect(Buffer.from(plain).toString()).to.equal(text);
    });

    it("ECDSA over P-256 verifies Node's signatures, and Node verifies its", async () => {
      const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const signature = sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" });
      const code = `async function main({ jwk, signature }) {
        const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
        const data = new TextEncoder().encode("${text}");
        const key = await crypto.subtle.importKey("jwk", jwk, algorithm, true, ["verify"]);
        const pair = await crypto.subtle.generateKey(algorithm, false, ["sign", "verify"]);
        const own = await crypto.subtle.sign(algorithm, pair.privateKey, data);
        return {
          node: await crypto.subtle.verify(algorithm, key, new Uint8Array(signature), data),
          other: await crypto.subtle.verify(algorithm, key, new Uint8Array(signature), new Uint8Array(3)),
          own: Array.from(new Uint8Array(own)),
          ownJwk: await crypto.subtle.exportKey("jwk", pair.publicKey),
          secret: await crypto.subtle.exportKey("jwk", pair.privateKey).catch((error) => error.message),
        };
      }`;
      const result = JSON.parse(
        (await run(code, { params: { jwk: publicKey.export({ format: "jwk" }), signature: [...signature] } })).response,
      ) as Record<string, unknown>;
      expect(result).to.include({ node: true, other: false, secret: "the key is not extractable" });
      const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
      const key = await webcrypto.subtle.importKey("jwk", result.ownJwk as webcrypto.JsonWebKey, algorithm, true, [
        "verify",
      ]);
      expect(
        await webcrypto.subtle.verify(algorithm, key, new Uint8Array(result.own as number[]), Buffer.from(text)),
      ).to.equal(true);
    });

    it("Ed25519 verifies Node's signatures, by JWK and by SPKI", async () => {
      const { publicKey, privateKey } = generateKeyPairSync("ed25519");
      const signature = [...sign(null, Buffer.from(text), privateKey)];
      const code = `async function main({ jwk, spki, signature }) {
        const data = new TextEncoder().encode("${text}");
        const keys = [await crypto.subtle.importKey("jwk", jwk, "Ed25519", true, ["verify"]), await crypto.subtle.importKey("spki", new Uint8Array(spki), "Ed25519", true, ["verify"])];
        const all = await Promise.all(keys.map((key) => crypto.subtle.verify("Ed25519", key, new Uint8Array(signature), data)));
        return [...all, await crypto.subtle.verify("Ed25519", keys[0], new Uint8Array(64), data)];
      }`;
      const params = {
        jwk: publicKey.export({ format: "jwk" }),
        spki: [...publicKey.export({ format: "der", type: "spki" })],
        signature,
      };
      expect(JSON.parse((await run(code, { params })).response)).to.deep.equal([true, true, false]);
    });

    /** The same code here and in Node's Web Crypto; bytes are compared as hex. */
    const same: Record<string, string> = {
      "HKDF and PBKDF2": `
        const secret = async (name) => crypto.subtle.importKey("raw", bytes("secret"), name, false, ["deriveBits", "deriveKey"]);
        const [hkdf, pbkdf2] = [await secret("HKDF"), await secret("PBKDF2")];
        const aes = await crypto.subtle.deriveKey({ name: "HKDF", hash: "SHA-384", salt: bytes("s"), info: bytes("i") }, hkdf, { name: "AES-GCM", length: 256 }, true, ["encrypt"]);
        return [
          hex(await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: bytes("s"), info: bytes("i") }, hkdf, 256)),
          hex(await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-512", salt: bytes("s"), iterations: 1000 }, pbkdf2, 512)),
          hex(await crypto.subtle.exportKey("raw", aes)),
        ];`,
      "AES-CBC and AES-CTR": `
        const all = [];
        for (const algorithm of [{ name: "AES-CBC", iv: new Uint8Array(16).fill(3) }, { name: "AES-CTR", counter: new Uint8Array(16).fill(254), length: 64 }]) {
          const key = await crypto.subtle.importKey("raw", new Uint8Array(32).fill(7), algorithm.name, false, ["encrypt", "decrypt"]);
          const sealed = await crypto.subtle.encrypt(algorithm, key, bytes("a text of more than one block"));
          all.push(hex(sealed), hex(await crypto.subtle.decrypt(algorithm, key, sealed)));
        }
        return all;`,
      "ECDH over three curves and X25519": `
        const all = [];
        for (const { algorithm, mine, theirs } of params.pairs) {
          const key = await crypto.subtle.importKey("pkcs8", new Uint8Array(mine), algorithm, true, ["deriveBits"]);
          const peer = await crypto.subtle.importKey("spki", new Uint8Array(theirs), algorithm, true, []);
          const { crv, d, x, y } = await crypto.subtle.exportKey("jwk", key);
          all.push(hex(await crypto.subtle.deriveBits({ name: algorithm.name, public: peer }, key, 256)), crv, d, x, y ?? "");
          all.push(hex(await crypto.subtle.exportKey("raw", peer)), hex(await crypto.subtle.exportKey("spki", peer)));
        }
        return all;`,
      "Ed25519 signs": `
        const key = await crypto.subtle.importKey("pkcs8", new Uint8Array(params.ed25519), "Ed25519", true, ["sign"]);
        return [hex(await crypto.subtle.sign("Ed25519", key, bytes("m"))), hex(await crypto.subtle.exportKey("pkcs8", key))];`,
      "RS256, PS256 and their siblings verify": `
        const all = [];
        for (const { name, hash, saltLength, spki, jwk, signature } of params.rsa) {
          const keys = [await crypto.subtle.importKey("spki", new Uint8Array(spki), { name, hash }, true, ["verify"]), await crypto.subtle.importKey("jwk", jwk, { name, hash }, true, ["verify"])];
          const check = (key, changed, data) => crypto.subtle.verify({ name, saltLength }, key, new Uint8Array(signature).map((byte, i) => (i === changed ? byte ^ 1 : byte)), bytes(data));
          for (const key of keys) all.push(await check(key, -1, "m"), await check(key, 5, "m"), await check(key, -1, "n"), key.algorithm.modulusLength);
          all.push(hex(await crypto.subtle.exportKey("spki", keys[1])), (await crypto.subtle.exportKey("jwk", keys[0])).n);
        }
        return all;`,
    };
    const der = (key: KeyObject, type: "spki" | "pkcs8"): number[] => [
      ...(key.export({ format: "der", type } as never) as unknown as Buffer),
    ];
    const ecdh = (namedCurve?: string) => {
      const make = () =>
        namedCurve === undefined ? generateKeyPairSync("x25519") : generateKeyPairSync("ec", { namedCurve });
      const algorithm = namedCurve === undefined ? { name: "X25519" } : { name: "ECDH", namedCurve };
      return { algorithm, mine: der(make().privateKey, "pkcs8"), theirs: der(make().publicKey, "spki") };
    };
    const rsa = ([name, hash, saltLength]: [string, string, number?]) => {
      const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
      const padding = saltLength === undefined ? constants.RSA_PKCS1_PADDING : constants.RSA_PKCS1_PSS_PADDING;
      const signature = sign(hash.replace("-", ""), Buffer.from("m"), {
        key: privateKey,
        padding,
        ...defined({ saltLength }),
      });
      return {
        name,
        hash,
        saltLength,
        spki: der(publicKey, "spki"),
        jwk: publicKey.export({ format: "jwk" }),
        signature: [...signature],
      };
    };
    for (const [name, body] of Object.entries(same)) {
      it(`${name}, equal to Node's Web Crypto`, async () => {
        const params = {
          pairs: [ecdh("P-256"), ecdh("P-384"), ecdh("P-521"), ecdh()],
          ed25519: der(generateKeyPairSync("ed25519").privateKey, "pkcs8"),
          rsa: (
            [
              ["RSASSA-PKCS1-v1_5", "SHA-256"],
              ["RSASSA-PKCS1-v1_5", "SHA-512"],
              ["RSA-PSS", "SHA-256", 32],
              ["RSA-PSS", "SHA-384", 10],
            ] as [string, string, number?][]
          ).map(rsa),
        };
        const code = `async function main(params) {
          const bytes = (text) => new TextEncoder().encode(text);
          const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
          ${body}
        }`;
        const there = runInNewContext(`${code}; main`, { crypto: webcrypto, TextEncoder, Uint8Array }) as (
          given: unknown,
        ) => Promise<unknown>;
        const expected = JSON.parse(JSON.stringify(await there(params))) as unknown;
        const outcome = await run(code, { params });
        expect(outcome.error, JSON.stringify(outcome.error)).to.equal(undefined);
        expect(JSON.parse(outcome.response)).to.deep.equal(expected);
      });
    }

    it("an endless key derivation is ended by the run's time limit, and the sandbox survives", async () => {
      const code = `async function main() {
        const key = await crypto.subtle.importKey("raw", new Uint8Array(1), "PBKDF2", false, ["deriveBits"]);
        await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: new Uint8Array(1), iterations: 2 ** 31 }, key, 256);
      }`;
      expect((await run(code, { limits: { wallMs: 500 } })).error?.code).to.equal("timed_out");
      expect(await valueOf("1")).to.equal(1);
    });

    const refused: [string, string][] = [
      [`crypto.subtle.importKey("raw", new Uint8Array(1), "HKDF", true, [])`, "never extractable"],
      [
        `crypto.subtle.importKey("jwk", { kty: "RSA", n: "AQ", e: "AQAB" }, { name: "RSA-PSS", hash: "SHA-256" }, true, [])`,
        "1024 to 8192 bits",
      ],
      [
        `crypto.subtle.importKey("spki", new Uint8Array([0x30, 0x84, 0xff]), { name: "ECDSA", namedCurve: "P-256" }, true, [])`,
        "not valid DER",
      ],
      [`crypto.subtle.digest("MD5", new Uint8Array())`, "MD5 is not a hash"],
      [`crypto.subtle.generateKey({ name: "RSA-PSS" }, true, [])`, "RSA-PSS keys are not generated here"],
      [`crypto.subtle.importKey("raw", new Uint8Array(5), "AES-GCM", true, ["encrypt"])`, "16, 24 or 32 bytes"],
      [
        `crypto.subtle.importKey("raw", new Uint8Array(65), { name: "ECDSA", namedCurve: "P-256" }, true, ["verify"])`,
        "",
      ],
      [`crypto.getRandomValues(new Uint8Array(65537))`, "at most 65536"],
      [`crypto.getRandomValues(new Float32Array(1))`, "integer typed array"],
    ];
    for (const [expression, message] of refused) {
      it(`refuses ${expression}`, async () => {
        const { error } = await run(`async function main() { await ${expression}; }`);
        expect(error?.code).to.equal("threw");
        expect(error?.message).to.contain(message);
      });
    }
  });

  describe("ethers", () => {
    const secret = `0x${"11".repeat(32)}`;
    const expected = ethers.verifyMessage("m", new ethers.Wallet(secret).signMessageSync("m"));

    it("is version 6", async () => {
      expect(
        await valueOf(`ethers.verifyMessage("m", await new ethers.Wallet("${secret}").signMessage("m"))`),
      ).to.equal(expected);
      expect(
        await valueOf(`[ethers.parseEther("1.5").toString(), typeof ethers.JsonRpcProvider, ethers.version]`),
      ).to.deep.equal(["1500000000000000000", "function", ethers.version]);
    });

    it("is version 5 where the code reads a member that only 5 has", async () => {
      for (const expression of [
        `ethers.utils.verifyMessage("m", await new ethers.Wallet("${secret}").signMessage("m"))`,
        `(() => { const { utils } = ethers; return utils.getAddress("${expected.toLowerCase()}"); })()`,
        `ethers["utils"].getAddress("${expected.toLowerCase()}")`,
      ]) {
        expect(await valueOf(expression)).to.equal(expected);
      }
      expect(await valueOf(`ethers.BigNumber.from(2).pow(70).toString()`)).to.equal("1180591620717411303424");
    });

    it("is not misled by words in text and comments", async () => {
      expect(await valueOf(`[/* ethers.utils */ "ethers.BigNumber", ethers.version]`)).to.deep.equal([
        "ethers.BigNumber",
        ethers.version,
      ]);
    });

    it("makes wallets from the host's randomness", async () => {
      expect(
        await valueOf(`new Set(Array.from({ length: 3 }, () => ethers.hexlify(ethers.randomBytes(16)))).size`),
      ).to.equal(3);
    });

    it("is not loaded for code that does not name it, at no cost", async () => {
      expect(await valueOf(`typeof globalThis["eth" + "ers"]`)).to.equal("undefined");
    });
  });
});
