/** `crypto.subtle` in the sandbox, against Node's own Web Crypto. */
import { expect } from "chai";
import { constants, createHash, createHmac, generateKeyPairSync, sign, webcrypto, type KeyObject } from "node:crypto";
import { runInNewContext } from "node:vm";
import { run, valueOf } from "../../support/sandbox";
import { defined } from "../../../protocol/defined";

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
      const algorithm = { name: "HMAC", hash: "SHA-256" };
      const key = await crypto.subtle.importKey("raw", bytes("key"), algorithm, false, ["sign", "verify"]);
      const mac = await crypto.subtle.sign("HMAC", key, bytes("${text}"));
      return [
        (${hex})(mac),
        await crypto.subtle.verify("HMAC", key, mac, bytes("${text}")),
        await crypto.subtle.verify("HMAC", key, mac, bytes("other")),
      ];
    }`;
    expect(JSON.parse((await run(code)).response)).to.deep.equal([expected, true, false]);
  });

  it("AES-GCM decrypts in another WebCrypto; a changed byte is refused", async () => {
    const code = `async function main() {
      const uses = ["encrypt", "decrypt"];
      const key = await crypto.subtle.importKey("raw", new Uint8Array(32).fill(7), "AES-GCM", false, uses);
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
      const keys = [
        await crypto.subtle.importKey("jwk", jwk, "Ed25519", true, ["verify"]),
        await crypto.subtle.importKey("spki", new Uint8Array(spki), "Ed25519", true, ["verify"]),
      ];
      const all = await Promise.all(
        keys.map((key) => crypto.subtle.verify("Ed25519", key, new Uint8Array(signature), data)),
      );
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
      const secret = async (name) =>
        crypto.subtle.importKey("raw", bytes("secret"), name, false, ["deriveBits", "deriveKey"]);
      const [hkdf, pbkdf2] = [await secret("HKDF"), await secret("PBKDF2")];
      const aes = await crypto.subtle.deriveKey(
        { name: "HKDF", hash: "SHA-384", salt: bytes("s"), info: bytes("i") },
        hkdf,
        { name: "AES-GCM", length: 256 },
        true,
        ["encrypt"],
      );
      const salted = { name: "HKDF", hash: "SHA-256", salt: bytes("s"), info: bytes("i") };
      const iterated = { name: "PBKDF2", hash: "SHA-512", salt: bytes("s"), iterations: 1000 };
      return [
        hex(await crypto.subtle.deriveBits(salted, hkdf, 256)),
        hex(await crypto.subtle.deriveBits(iterated, pbkdf2, 512)),
        hex(await crypto.subtle.exportKey("raw", aes)),
      ];`,
    "AES-CBC and AES-CTR": `
      const all = [];
      const cbc = { name: "AES-CBC", iv: new Uint8Array(16).fill(3) };
      const ctr = { name: "AES-CTR", counter: new Uint8Array(16).fill(254), length: 64 };
      const [bits, uses] = [new Uint8Array(32).fill(7), ["encrypt", "decrypt"]];
      for (const algorithm of [cbc, ctr]) {
        const key = await crypto.subtle.importKey("raw", bits, algorithm.name, false, uses);
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
        const bits = await crypto.subtle.deriveBits({ name: algorithm.name, public: peer }, key, 256);
        all.push(hex(bits), crv, d, x, y ?? "");
        all.push(hex(await crypto.subtle.deriveBits({ name: algorithm.name, public: peer }, key)));
        all.push(hex(await crypto.subtle.exportKey("raw", peer)), hex(await crypto.subtle.exportKey("spki", peer)));
      }
      return all;`,
    "Ed25519 signs": `
      const key = await crypto.subtle.importKey("pkcs8", new Uint8Array(params.ed25519), "Ed25519", true, ["sign"]);
      const signature = await crypto.subtle.sign("Ed25519", key, bytes("m"));
      return [hex(signature), hex(await crypto.subtle.exportKey("pkcs8", key))];`,
    "RS256, PS256 and their siblings verify": `
      const all = [];
      for (const { name, hash, saltLength, spki, jwk, signature } of params.rsa) {
        const keys = [
          await crypto.subtle.importKey("spki", new Uint8Array(spki), { name, hash }, true, ["verify"]),
          await crypto.subtle.importKey("jwk", jwk, { name, hash }, true, ["verify"]),
        ];
        const check = (key, changed, data) =>
          crypto.subtle.verify(
            { name, saltLength },
            key,
            new Uint8Array(signature).map((byte, i) => (i === changed ? byte ^ 1 : byte)),
            bytes(data),
          );
        for (const key of keys)
          all.push(
            await check(key, -1, "m"),
            await check(key, 5, "m"),
            await check(key, -1, "n"),
            key.algorithm.modulusLength,
          );
        all.push(
          hex(await crypto.subtle.exportKey("spki", keys[1])),
          (await crypto.subtle.exportKey("jwk", keys[0])).n,
        );
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
        const hex = (buffer) =>
          Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
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
      const algorithm = { name: "PBKDF2", hash: "SHA-256", salt: new Uint8Array(1), iterations: 2 ** 31 };
      await crypto.subtle.deriveBits(algorithm, key, 256);
    }`;
    expect((await run(code, { limits: { wallMs: 500 } })).error?.code).to.equal("timed_out");
    expect(await valueOf("1")).to.equal(1);
  });

  const refused: [string, string][] = [
    [`crypto.subtle.importKey("raw", new Uint8Array(1), "HKDF", true, [])`, "never extractable"],
    [
      `crypto.subtle.importKey("jwk", { kty: "RSA", n: "AQ", e: "AQAB" }, ` +
        `{ name: "RSA-PSS", hash: "SHA-256" }, true, [])`,
      "1024 to 8192 bits",
    ],
    [
      `crypto.subtle.importKey("spki", new Uint8Array([0x30, 0x84, 0xff]), ` +
        `{ name: "ECDSA", namedCurve: "P-256" }, true, [])`,
      "not valid DER",
    ],
    [`crypto.subtle.digest("MD5", new Uint8Array())`, "MD5 is not a hash"],
    [`crypto.subtle.generateKey({ name: "RSA-PSS" }, true, [])`, "RSA-PSS keys are not generated here"],
    [`crypto.subtle.importKey("raw", new Uint8Array(5), "AES-GCM", true, ["encrypt"])`, "16, 24 or 32 bytes"],
    [
      `crypto.subtle.importKey("raw", new Uint8Array(), { name: "HMAC", hash: "SHA-256" }, true, ["sign"])`,
      "at least one byte",
    ],
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
