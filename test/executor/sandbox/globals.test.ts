import { expect } from "chai";
import { ethers } from "ethers";
import fc from "fast-check";
import { SEED } from "../../support/counts";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import { RUN_LIMITS } from "../../../protocol/limits";
import { jobOf, noFetcher, responseOf, run, silent, valueOf } from "../../support/sandbox";

describe("globals of an action", () => {
  const checks: Record<string, [expression: string, value: unknown]> = {
    URL: [
      `(() => {
        const url = new URL("../x?a=1#h", "https://user@EXAMPLE.com:443/a/b/");
        url.searchParams.append("b", "ä&");
        return [url.href, url.origin, url.port];
      })()`,
      ["https://user@example.com/a/x?a=1&b=%C3%A4%26#h", "https://example.com", ""],
    ],
    URLSearchParams: [`new URLSearchParams({ a: "1 2", b: "ü" }).toString()`, "a=1+2&b=%C3%BC"],
    "TextEncoder and TextDecoder": [`new TextDecoder().decode(new TextEncoder().encode("aé€😀"))`, "aé€😀"],
    "TextDecoder in pieces": [
      `(() => {
        const d = new TextDecoder();
        const bytes = new TextEncoder().encode("aé€😀");
        return Array.from(bytes, (byte) => d.decode(new Uint8Array([byte]), { stream: true })).join("") + d.decode();
      })()`,
      "aé€😀",
    ],
    "TextDecoder in pieces, of other encodings": [
      `(() => {
        const decoded = (label, bytes) => {
          const d = new TextDecoder(label);
          return bytes.map((byte) => d.decode(new Uint8Array([byte]), { stream: true })).join("") + d.decode();
        };
        return [
          decoded("utf-16le", [0xac, 0x20, 0x3d, 0xd8, 0x00, 0xde]),
          decoded("shift_jis", [0x93, 0xfa, 0x96, 0x7b]),
          decoded("latin1", [0xe4, 0x80]),
        ];
      })()`,
      ["€😀", "日本", "ä€"],
    ],
    "TextDecoder removes U+FEFF at the start of a stream only": [
      `(() => {
        const d = new TextDecoder();
        const mark = [0xef, 0xbb, 0xbf];
        const pieces = [...mark, 0x61].map((byte) => d.decode(new Uint8Array([byte]), { stream: true }));
        pieces.push(d.decode(new Uint8Array(mark), { stream: true }), d.decode(), d.decode(new Uint8Array(mark)));
        return pieces;
      })()`,
      ["", "", "", "a", "\ufeff", "", ""],
    ],
    "TextDecoder names its encoding": [
      `["utf8", " UTF-8 ", "latin1", "utf-16"].map((label) => new TextDecoder(label).encoding)`,
      ["utf-8", "utf-8", "windows-1252", "utf-16le"],
    ],
    "TextDecoder, fatal": [
      `(() => {
        try {
          return new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([255]));
        } catch (error) {
          return error.name;
        }
      })()`,
      "TypeError",
    ],
    "TextEncoder.encodeInto": [
      `(() => {
        const into = new Uint8Array(4);
        return [new TextEncoder().encodeInto("a€€", into), Array.from(into)];
      })()`,
      [{ read: 2, written: 4 }, [97, 226, 130, 172]],
    ],
    "atob and btoa": [
      `[
        btoa("\\u00ff\\u0000a"),
        atob("/wBh").length,
        (() => {
          try {
            atob("*");
          } catch (e) {
            return "refused";
          }
        })(),
      ]`,
      ["/wBh", 3, "refused"],
    ],
    structuredClone: [
      `(() => {
        const copy = structuredClone({ d: new Date(5), m: new Map([[1, new Set([2])]]), b: new Uint8Array([3]) });
        return [copy.d.getTime(), [...copy.m.get(1)], copy.b[0]];
      })()`,
      [5, [2], 3],
    ],
    "structuredClone of odd values": [
      `(() => {
        const copy = structuredClone({
          own: JSON.parse('{"__proto__": {"isAdmin": true}}'),
          date: new Date(NaN),
          view: new DataView(new Uint8Array([1, 2, 3]).buffer, 1, 1),
        });
        return [Object.keys(copy.own), copy.own.isAdmin ?? null, String(copy.date), copy.view.getUint8(0)];
      })()`,
      [["__proto__"], null, "Invalid Date", 2],
    ],
    "timers in order": [
      `await new Promise((resolve) => {
        const seen = [];
        setTimeout(() => seen.push("b"), 20);
        setTimeout(() => seen.push("a"), 1);
        clearTimeout(setTimeout(() => seen.push("never"), 5));
        queueMicrotask(() => seen.push("micro"));
        setTimeout(() => resolve(seen), 40);
      })`,
      ["micro", "a", "b"],
    ],
    setInterval: [
      `await new Promise((resolve) => {
        let n = 0;
        const onTick = (step) => {
          n += step;
          if (n < 6) return;
          clearInterval(id);
          resolve(n);
        };
        const id = setInterval(onTick, 1, 2);
      })`,
      6,
    ],
    "AbortController keeps the reason it is given": [
      `(() => {
        const c = new AbortController();
        c.abort(null);
        return [c.signal.aborted, c.signal.reason];
      })()`,
      [true, null],
    ],
    AbortController: [
      `(() => {
        const c = new AbortController();
        let heard = 0;
        c.signal.addEventListener("abort", () => heard++, { once: true });
        c.signal.onabort = () => heard++;
        c.abort("why");
        c.abort("again");
        return [c.signal.aborted, c.signal.reason, heard];
      })()`,
      [true, "why", 2],
    ],
    "AbortSignal.timeout": [
      `await new Promise((resolve) => {
        const s = AbortSignal.timeout(5);
        s.addEventListener("abort", () => resolve(s.reason.name));
      })`,
      "TimeoutError",
    ],
    "AbortSignal.any": [
      `(() => {
        const c = new AbortController();
        const any = AbortSignal.any([new AbortController().signal, c.signal]);
        c.abort(1);
        return any.reason;
      })()`,
      1,
    ],
    Headers: [
      `(() => {
        const h = new Headers({ "X-A": "1" });
        h.append("x-a", "2");
        return [h.get("X-a"), [...h.keys()]];
      })()`,
      ["1, 2", ["x-a"]],
    ],
    "Headers of whatever the web takes": [
      `(() => {
        const h = new Headers(Object.assign(Object.create(null), { "Idempotency-Key": 123, b: true }));
        h.set("c", " padded\\r\\n");
        h.append("c", 4n);
        const pairs = function* () { yield ["d", 1]; };
        return [[...new Headers(h)], [...new Headers(new Map([["e", "f"]]))], [...new Headers(pairs())]];
      })()`,
      [
        [
          ["b", "true"],
          ["c", "padded, 4"],
          ["idempotency-key", "123"],
        ],
        [["e", "f"]],
        [["d", "1"]],
      ],
    ],
    "Headers refuse what cannot be sent": [
      `[{ "a b": 1 }, { "": 1 }, { a: "x\\r\\ny: 1" }, { a: "\\0" }, { a: "ż" }].concat([
        [["a"]], [["a", 1, 2]], "text", { "a!": 1 }, { a: "x\\u00a0" },
      ]).map((init) => {
        try {
          return [...new Headers(init)];
        } catch (error) {
          return error.name;
        }
      })`,
      Array(10).fill("TypeError"),
    ],
    Request: [
      `(() => {
        const r = new Request("https://example.com/", { method: "post", body: new URLSearchParams({ a: "b" }) });
        return [r.method, r.headers.get("content-type")];
      })()`,
      ["POST", "application/x-www-form-urlencoded;charset=UTF-8"],
    ],
    Response: [
      `await (async () => {
        const r = new Response('{"a":1}', { status: 201 });
        const copy = r.clone();
        return [
          r.ok,
          await r.json(),
          r.bodyUsed,
          (await copy.arrayBuffer()).byteLength,
          await Response.json([1]).text(),
        ];
      })()`,
      [true, { a: 1 }, true, 7, "[1]"],
    ],
    "crypto.getRandomValues": [
      `(() => {
        const a = crypto.getRandomValues(new Uint32Array(64));
        const b = crypto.getRandomValues(new Uint32Array(64));
        return [new Set(a).size > 60, a.join() !== b.join()];
      })()`,
      [true, true],
    ],
    "crypto.randomUUID": [
      `/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())`,
      true,
    ],
    "EventTarget, Event, CustomEvent": [
      `(() => {
        const t = new EventTarget();
        const seen = [];
        t.addEventListener("x", (e) => seen.push(e.type, e.detail, e.target === t), { once: true });
        t.dispatchEvent(new CustomEvent("x", { detail: 7 }));
        t.dispatchEvent(new Event("x"));
        return [seen, new AbortController().signal instanceof EventTarget];
      })()`,
      [["x", 7, true], true],
    ],
    "Blob and File": [
      `await (async () => {
        const b = new Blob(["ab", new Uint8Array([99])], { type: "text/plain" });
        const f = new File([b], "f.txt");
        return [b.size, await b.slice(1).text(), f.name, await f.text(), (await new Response(b).blob()).type];
      })()`,
      [3, "bc", "f.txt", "abc", "text/plain"],
    ],
    "FormData as a body": [
      `await (async () => {
        const form = new FormData();
        form.append("a", "1");
        form.append("f", new Blob(["x"]), "f.txt");
        const r = new Request("https://example.com/", { method: "POST", body: form });
        const text = await r.text();
        return [
          r.headers.get("content-type").startsWith("multipart/form-data; boundary="),
          text.includes('name="a"'),
          text.includes('filename="f.txt"'),
        ];
      })()`,
      [true, true, true],
    ],
    streams: [
      `await (async () => {
        const r = new Response("a stream");
        const copy = r.clone();
        const chunks = [];
        for await (const chunk of r.body.pipeThrough(new TextDecoderStream())) chunks.push(chunk);
        return [chunks.join(""), r.bodyUsed, await copy.text(), new Response(null).body];
      })()`,
      ["a stream", true, "a stream", null],
    ],
    "CompressionStream and DecompressionStream": [
      `await (async () => {
        const all = [];
        for (const format of ["gzip", "deflate", "deflate-raw"]) {
          const packed = new Blob(["again ".repeat(1000)]).stream().pipeThrough(new CompressionStream(format));
          const bytes = await new Response(packed).bytes();
          const text = await new Response(
            new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format)),
          ).text();
          all.push(bytes.length < 200, text.length);
        }
        all.push(
          await new Response(new Blob(["no gzip"]).stream().pipeThrough(new DecompressionStream("gzip")))
            .text()
            .catch((error) => error.name),
        );
        return all;
      })()`,
      [true, 6000, true, 6000, true, 6000, "TypeError"],
    ],
    "TextEncoderStream keeps characters whole": [
      `await (async () => {
        const s = new TextEncoderStream();
        const w = s.writable.getWriter();
        const done = new Response(s.readable).text();
        await w.write("\\ud83d");
        await w.write("\\ude00!");
        await w.close();
        return done;
      })()`,
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

  it("TextEncoder.encodeInto stops where the engine's own does", async () => {
    const cases = fc.sample(fc.tuple(fc.string({ unit: "binary" }), fc.nat(24)), { seed: SEED, numRuns: 200 });
    const own = cases.map(([text, size]) => {
      const into = new Uint8Array(size);
      return [new TextEncoder().encodeInto(text, into), [...into]];
    });
    const encode = `cases.map(([text, size]) => {
      const into = new Uint8Array(size);
      return [new TextEncoder().encodeInto(text, into), [...into]];
    })`;
    expect(await responseOf(`function main({ cases }) { return ${encode}; }`, { params: { cases } })).to.deep.equal(
      own,
    );
  });

  it("fetch sends nothing once it was aborted", async () => {
    const code = `async function main() {
      const aborted = new AbortController();
      const sent = fetch("https://example.com", { method: "POST", body: "text", signal: aborted.signal });
      aborted.abort();
      const name = await sent.catch((error) => error.name);
      await new Promise((done) => setTimeout(done, 20));
      return name;
    }`;
    expect(await responseOf(code, { limits: { fetches: 0 } })).to.equal("AbortError");
  });

  it("fetch sends every header it is given, and fails for none of the answer's", async () => {
    const sent: unknown[] = [];
    const fetcher: typeof noFetcher = {
      ...noFetcher,
      fetchGuest: async ({ headers, url }) => {
        sent.push(headers);
        const odd: [string, string][] = [
          ["x-odd", "a\0b"],
          ["x y", "1"],
          ["x-plain", "\u00a01"],
        ];
        const response = { url, redirected: false, status: 200, statusText: "", headers: odd };
        return { response, body: Buffer.alloc(0) };
      },
    };
    const pool = await createSandboxPool({ limits: RUN_LIMITS, size: 1, logger: silent, fetcher });
    const code = `async function main() {
      return [...(await fetch("https://a.test/", { headers: { "Idempotency-Key": 123 } })).headers];
    }`;
    try {
      expect((await pool.run(jobOf(code))).response).to.equal('[["x-plain","1"]]');
      expect(sent).to.deep.equal([[["idempotency-key", "123"]]]);
    } finally {
      await pool.close(0);
    }
  });

  it("fetch takes null for no options", async () => {
    const code = `async function main() { await fetch("https://example.com", null); }`;
    expect((await run(code)).error?.message).to.contain("there is no network in this test");
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
