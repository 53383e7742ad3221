/**
 * Whatever a service sends, the parsers return a value or throw `Malformed`: no other error, no crash, no unbounded
 * memory or time.
 */
import { QuoteVerifier } from "@phala/dcap-qvl";
import { expect } from "chai";
import fc from "fast-check";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { pinnedImages } from "../../../client/verify/compose";
import { parseEventLog, replayAgainst } from "../../../client/verify/eventLog";
import { acmeAccountOf, leafOf, MAX_EVIDENCE_BYTES, parseChecksums, quoteFileOf } from "../../../client/verify/files";
import { MAX_QUOTE_BYTES, readQuote } from "../../../client/verify/quote";
import { verifySignature } from "../../../client/verify/signature";
import { Malformed } from "../../../client/verify/types";
import { issueCertificate, pem } from "../../../scripts/dev/tee/certificates";
import { buildEventLog, registersOf } from "../../../scripts/dev/tee/eventLog";
import { createPlatform, type Collateral, type Platform } from "../../../scripts/dev/tee/platform";
import { buildQuote, type Measurements } from "../../../scripts/dev/tee/quote";
import { count, SEED } from "../../support/counts";

const RUNS = { seed: SEED, numRuns: count(400, 20_000) };

function malformedOrFine<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof Malformed) return undefined;
    throw error;
  }
}

/** A valid text with a few parts replaced, removed or repeated: closer to a valid one than random bytes. */
const damaged = (valid: Buffer): fc.Arbitrary<Buffer> =>
  fc
    .array(
      fc.record({
        at: fc.nat({ max: Math.max(0, valid.length - 1) }),
        take: fc.nat({ max: 40 }),
        put: fc.uint8Array({ maxLength: 40 }),
      }),
      {
        minLength: 1,
        maxLength: 4,
      },
    )
    .map((cuts) =>
      cuts.reduce<Buffer>(
        (bytes, { at, take, put }) => Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + take)]),
        valid,
      ),
    );

describe("parsers of a service's documents", () => {
  let platform: Platform;
  let quote: Buffer;
  const events = buildEventLog({
    appId: Buffer.alloc(20, 1),
    composeHash: Buffer.alloc(32, 2),
    instanceId: Buffer.alloc(20, 3),
  });
  const registers = registersOf(events);

  before(async () => {
    platform = await createPlatform();
    quote = await buildQuote(platform, { mrtd: Buffer.alloc(48, 7), rtmrs: registers }, Buffer.alloc(64, 9));
  });

  describe("quotes", () => {
    it("reads the registers and report data at Intel's offsets", () => {
      const facts = readQuote(quote.toString("hex"));
      expect(facts.mrtd.equals(quote.subarray(48 + 136, 48 + 184))).to.equal(true);
      expect(facts.rtmrs[3].equals(quote.subarray(48 + 472, 48 + 520))).to.equal(true);
      expect(facts.reportData.equals(quote.subarray(48 + 520, 48 + 584))).to.equal(true);
      expect(facts.mrtd.every((byte) => byte === 7) && facts.reportData.every((byte) => byte === 9)).to.equal(true);
    });

    it("survives random and damaged input", () => {
      fc.assert(
        fc.property(
          fc.uint8Array({ maxLength: 2000 }),
          (bytes) => void malformedOrFine(() => readQuote(Buffer.from(bytes).toString("hex"))),
        ),
        RUNS,
      );
      fc.assert(
        fc.property(damaged(quote), (bytes) => void malformedOrFine(() => readQuote(bytes.toString("hex")))),
        RUNS,
      );
      fc.assert(
        fc.property(fc.anything(), (value) => void malformedOrFine(() => readQuote(value))),
        RUNS,
      );
    });

    it("trusts no length field of the quote", () => {
      for (const size of [0xffffffff, 0x7fffffff, 0x00ffffff]) {
        const lying = Buffer.from(quote);
        lying.writeUInt32LE(size, 632);
        expect(() => readQuote(lying.toString("hex"))).to.throw(Malformed);
      }
      expect(() => readQuote("00".repeat(MAX_QUOTE_BYTES + 1))).to.throw(Malformed, "larger than");
    });

    it("rejects a quote with any single byte changed, wherever it is signed", async () => {
      const signed = 48 + 584;
      const auth = signed + 4;
      const qe = auth + 64 + 64 + 6;
      // Registers and keys, both signatures, the quoting enclave's report and its bound data.
      const covered = [
        ...range(0, signed),
        ...range(auth, auth + 128),
        ...range(qe, qe + 384 + 64),
        ...range(qe + 450, qe + 482),
      ];
      const options = {
        collateral: platform.collateral,
        trustedRoot: platform.rootDer,
        nowSeconds: Math.floor(Date.now() / 1000),
        timeoutMs: 1_000,
      };
      expect(await verifySignature(readQuote(quote.toString("hex")), options)).to.equal("UpToDate");
      const flip = fc.record({ at: fc.constantFrom(...covered), bit: fc.nat({ max: 7 }) });
      await fc.assert(
        fc.asyncProperty(flip, async ({ at, bit }) => {
          const changed = Buffer.from(quote);
          changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at);
          const believed = await (async () => verifySignature(readQuote(changed.toString("hex")), options))().then(
            () => true,
            (error: unknown) => {
              if (error instanceof Malformed) return false;
              throw error;
            },
          );
          expect(believed, `byte ${at}`).to.equal(false);
        }),
        { seed: SEED, numRuns: count(60, 3_000) },
      );
    });
  });

  describe("checks that the verification library leaves to its caller", () => {
    const now = (): number => Math.floor(Date.now() / 1000);
    const quoteBy = (by: Platform, measurements: Partial<Measurements>): Promise<Buffer> =>
      buildQuote(by, { mrtd: Buffer.alloc(48, 7), rtmrs: registers, ...measurements }, Buffer.alloc(64));
    const judged = async (
      by: Platform,
      measurements: Partial<Measurements> = {},
      change: Partial<Collateral> = {},
      pccsUrl?: string,
    ): Promise<string> => {
      const bytes = await quoteBy(by, measurements);
      const options = {
        ...(pccsUrl === undefined ? { collateral: { ...by.collateral, ...change } } : { pccsUrl }),
        trustedRoot: by.rootDer,
        nowSeconds: now(),
        timeoutMs: 1_000,
      };
      return verifySignature(readQuote(bytes.toString("hex")), options).catch((error: unknown) => {
        if (error instanceof Malformed) return `refused: ${error.message}`;
        throw error;
      });
    };
    /** The library's own verdict on the same input. */
    const library = async (
      by: Platform,
      measurements: Partial<Measurements> = {},
      change: Partial<Collateral> = {},
    ): Promise<string> => {
      const bytes = await quoteBy(by, measurements);
      return QuoteVerifier.newWithRootCa(by.rootDer).verify(bytes, { ...by.collateral, ...change } as never, now())
        .status;
    };

    it("rejects a TDX module that is not Intel's own", async () => {
      const foreign = { mrSignerSeam: Buffer.alloc(48, 1) };
      expect(await library(platform, foreign)).to.equal("UpToDate");
      expect(await judged(platform, foreign)).to.equal("refused: the TDX module is not Intel's own");
    });

    it("rejects a platform certificate issued by a certificate that may not issue", async () => {
      const forged = await createPlatform({ authorityMayIssue: false });
      expect(await library(forged)).to.equal("UpToDate");
      expect(await judged(forged)).to.match(/^refused: .*(certificate authority|trusted root)/);
    });

    it("rejects a revocation list that is unsigned or malformed", async () => {
      const foreign = { pck_crl: (await createPlatform()).collateral.pck_crl };
      expect(await library(platform, {}, foreign)).to.equal("UpToDate");
      expect(await judged(platform, {}, foreign)).to.match(/^refused: the PCK revocation list is not signed/);
      expect(await library(platform, {}, { root_ca_crl: "00ff" })).to.equal("UpToDate");
      expect(await judged(platform, {}, { root_ca_crl: "00ff" })).to.match(/^refused: .*cannot be read/);
    });

    it("rejects a genuine revocation list of another authority, which names nothing of this platform", async () => {
      const other = await platform.otherCrl();
      expect(await library(platform, {}, other)).to.equal("UpToDate");
      expect(await judged(platform, {}, other)).to.match(/^refused: the PCK revocation list is not of the authority/);
    });

    it("fetches the revocation list of the authority that issued the platform's certificate", async () => {
      const { collateral } = platform;
      const lists = { platform: collateral, processor: { ...collateral, ...(await platform.otherCrl()) } };
      const signed = (name: string, text: string, signature: string): string =>
        `{"${name}":${text},"signature":"${signature}"}`;
      const server = createServer(({ url = "" }, answer) => {
        const { pathname, searchParams } = new URL(url, "http://pccs");
        const list = lists[searchParams.get("ca") === "platform" ? "platform" : "processor"];
        const answers: Record<string, readonly [body: string | Buffer, header?: string, chain?: string]> = {
          pckcrl: [Buffer.from(list.pck_crl, "hex"), "SGX-PCK-CRL-Issuer-Chain", list.pck_crl_issuer_chain],
          tcb: [
            signed("tcbInfo", collateral.tcb_info, collateral.tcb_info_signature),
            ...(["TCB-Info-Issuer-Chain", collateral.tcb_info_issuer_chain] as const),
          ],
          identity: [
            signed("enclaveIdentity", collateral.qe_identity, collateral.qe_identity_signature),
            ...(["SGX-Enclave-Identity-Issuer-Chain", collateral.qe_identity_issuer_chain] as const),
          ],
          rootcacrl: [collateral.root_ca_crl],
        };
        const [body, header, chain] = answers[pathname.split("/").at(-1) ?? ""] ?? [""];
        if (header !== undefined && chain !== undefined) answer.setHeader(header, encodeURIComponent(chain));
        answer.end(body);
      }).listen(0, "127.0.0.1");
      await once(server, "listening");
      const pccsUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
      try {
        expect(await judged(platform, {}, {}, pccsUrl)).to.equal("UpToDate");
      } finally {
        server.close();
      }
    });

    it("rejects TCB info that a platform's own certificate signed", async () => {
      const own = await platform.ownTcbInfo();
      expect(await library(platform, {}, own)).to.equal("UpToDate");
      expect(await judged(platform, {}, own)).to.match(/^refused: the TCB info is not signed by the certificate for/);
    });

    it("the library itself rejects a machine in debug mode", async () => {
      expect(await judged(platform, { tdAttributes: Buffer.from("0100001000000000", "hex") })).to.match(
        /^refused: .*[Dd]ebug/,
      );
    });
  });

  describe("event logs", () => {
    it("survive random and damaged input; a log that still parses is replayed or refused", () => {
      const valid = Buffer.from(JSON.stringify(events));
      const tryAll = (text: unknown): void => {
        const log = malformedOrFine(() => parseEventLog(text));
        if (log !== undefined) malformedOrFine(() => replayAgainst(log, registers));
      };
      fc.assert(
        fc.property(damaged(valid), (bytes) => tryAll(bytes.toString("utf8"))),
        RUNS,
      );
      fc.assert(fc.property(fc.json(), tryAll), RUNS);
      fc.assert(fc.property(fc.anything(), tryAll), RUNS);
    });

    it("are refused when they are too long, have too many events or too large ones", () => {
      const [first] = events;
      expect(() => parseEventLog(JSON.stringify(Array.from({ length: 5000 }, () => first)))).to.throw(Malformed);
      expect(() => parseEventLog(" ".repeat(5 * 1024 * 1024))).to.throw(Malformed, "longer than");
      expect(() => parseEventLog(JSON.stringify([{ ...first, event_payload: "00".repeat(300 * 1024) }]))).to.throw(
        Malformed,
      );
      expect(() => parseEventLog(`${"[".repeat(100_000)}${"]".repeat(100_000)}`)).to.throw(Malformed);
    });
  });

  describe("evidence files", () => {
    it("survive random and damaged input", async () => {
      const certificate = Buffer.from(pem(await issueCertificate({ name: "localhost" })));
      const checksums = Buffer.from(`${"ab".repeat(32)}  cert-localhost.pem\n${"cd".repeat(32)} *acme-account.json\n`);
      const json = Buffer.from(JSON.stringify({ uri: "https://acme.example/1", quote: "04", event_log: "[]" }));
      const bytes = (valid: Buffer): fc.Arbitrary<Buffer> =>
        fc.oneof(
          damaged(valid),
          fc.uint8Array({ maxLength: 500 }).map((noise) => Buffer.from(noise)),
        );
      fc.assert(
        fc.property(bytes(certificate), (file) => void malformedOrFine(() => leafOf(file, "x.pem"))),
        RUNS,
      );
      fc.assert(
        fc.property(bytes(checksums), (file) => void malformedOrFine(() => parseChecksums(file))),
        RUNS,
      );
      fc.assert(
        fc.property(bytes(json), (file) => void malformedOrFine(() => [acmeAccountOf(file), quoteFileOf(file)])),
        RUNS,
      );
    });

    it("are refused when they are too large; parsing a certificate file is not quadratic", () => {
      const big = Buffer.alloc(MAX_EVIDENCE_BYTES + 1, 0x61);
      for (const parse of [
        () => parseChecksums(big),
        () => leafOf(big, "x.pem"),
        () => acmeAccountOf(big),
        () => quoteFileOf(big),
      ])
        expect(parse).to.throw(Malformed);
      const begins = Buffer.from("-----BEGIN CERTIFICATE-----\nAAAA\n".repeat(25_000));
      const started = Date.now();
      expect(() => leafOf(begins, "x.pem")).to.throw(Malformed);
      expect(Date.now() - started).to.be.lessThan(2_000);
    });

    it("checksums: each file is listed once, by a plain name", () => {
      const line = (name: string): Buffer => Buffer.from(`${"ab".repeat(32)}  ${name}\n`);
      for (const name of ["../x", "/etc/passwd", ".hidden", "a b", "", "a".repeat(200)])
        expect(() => parseChecksums(line(name)), name).to.throw(Malformed);
      expect(() => parseChecksums(Buffer.concat([line("a.pem"), line("a.pem")]))).to.throw(Malformed, "twice");
      expect(() => parseChecksums(Buffer.alloc(0))).to.throw(Malformed);
      expect(parseChecksums(line("cert-a.example.pem")).get("cert-a.example.pem")).to.equal("ab".repeat(32));
    });
  });

  describe("compose files", () => {
    const digest = `@sha256:${"ab".repeat(32)}`;
    const app = (compose: string, more: object = {}): string =>
      JSON.stringify({ docker_compose_file: compose, ...more });

    it("survive random and damaged input", () => {
      const valid = Buffer.from(`services:\n  a: &a\n    image: r/a${digest}\n  b:\n    <<: *a\n`);
      fc.assert(
        fc.property(damaged(valid), (bytes) => void malformedOrFine(() => pinnedImages(app(bytes.toString("utf8"))))),
        RUNS,
      );
      fc.assert(
        fc.property(fc.oneof(fc.string(), fc.json()), (text) => void malformedOrFine(() => pinnedImages(text))),
        RUNS,
      );
    });

    it("must name every image by digest: no tag, variable, build, other file or missing image", () => {
      expect(pinnedImages(app(`services:\n  a: {image: "registry.example:5000/x/a:1.2${digest}"}\n`)).size).to.equal(1);
      const loose = [
        "services: {a: {image: r/a}}",
        "services: {a: {image: r/a:latest}}",
        `services: {a: {image: "$IMAGE${digest}"}}`,
        "services: {a: {image: 'r/a@sha256:abcd'}}",
        `services: {a: {image: "r/a${digest}", build: .}}`,
        `services: {a: {image: "r/a${digest}", extends: {file: other.yml, service: x}}}`,
        `include: [other.yml]\nservices: {a: {image: "r/a${digest}"}}`,
        `x: &x {build: .}\nservices: {a: {<<: *x, image: "r/a${digest}"}}`,
        "services: {a: {}}",
        "services: {}",
        "services: [a]",
        "",
        `services: {a: {image: "r/a${digest}", image: r/b}}`,
      ];
      for (const compose of loose) expect(() => pinnedImages(app(compose)), compose).to.throw(Malformed);
      expect(() => pinnedImages(app(`services: {a: {image: "r/a${digest}"}}`, { runner: "bash" }))).to.throw(Malformed);
    });

    it("must have nothing that brings in or starts a program beside the images' own", () => {
      const image = `image: "r/a${digest}"`;
      const service = (member: string): string => `services: {a: {${image}, ${member}}}`;
      const file = (member: string): string => `services: {a: {${image}}}\n${member}`;
      const fine = [
        file("name: keywright"),
        file("x-any: [thing]"),
        file("networks: {default: {name: keywright_default, ipam: {}, external: false}}"),
        file("volumes: {one: {name: keywright_one}, two: {name: keywright_two}}"),
        file("volumes: {one: null, two: }"),
        service("command: null, entrypoint: null, networks: {default: null}"),
        service("networks: [default]"),
      ];
      for (const compose of fine) expect(pinnedImages(app(compose)).size, compose).to.equal(1);
      const running = [
        ...["command: [x]", "entrypoint: []", "user: '0'", "working_dir: /x", "env_file: x", "configs: [x]"].map(
          service,
        ),
        ...["secrets: [x]", "volumes_from: [b]", "links: [b]", "hostname: b", "container_name: b"].map(service),
        ...["privileged: true", "pid: host", "ipc: host", "network_mode: host", "devices: [/dev/x]"].map(service),
        ...["post_start: [{command: x}]", "develop: {}", "deploy: {}", "runtime: x", "extra_hosts: ['b:::1']"].map(
          service,
        ),
        ...["networks: {default: {aliases: [b]}}", "networks: [other]", "dns: 1.1.1.1", "cgroup_parent: x"].map(
          service,
        ),
        ...["configs: {c: {content: x}}", "secrets: {c: {file: x}}", "include: [x]", "models: {x: {}}"].map(file),
        ...["networks: {other: }", "networks: {default: {driver: x}}", "networks: {default: {name: host}}"].map(file),
        ...["volumes: {v: {driver: x}}", "volumes: {v: {external: true}}", "volumes: {v: {driver_opts: {o: b}}}"].map(
          file,
        ),
        ...["volumes: {v: {name: v}, w: {name: v}}", "volumes: {v: {name: v}, w: }", "volumes: {v: {name: $V}}"].map(
          file,
        ),
        `services: {a: {${image}}, eth.rpc.example: {${image}}}`,
        `services: {a: {${image}}, __proto__: {${image}}}`,
        // What Docker's parser reads otherwise.
        service("read_only: !reset true"),
        service("entrypoint: !!null x"),
        service("environment: !!map {A: b}"),
        service("tmpfs: !!seq [/tmp]"),
        `x-x: &x {}\nx-y: &y {}\nservices: {a: {<<: *x, <<: *y, ${image}}}`,
        ...["\r", "\u0085", "\u2028", "\ufeff"].map((end) => file(`# comment${end}x-any: thing`)),
        `%YAML 1.1\n---\n${file("x-any: thing")}`,
        file("x-any: |\n  thing"),
        file("x-any: &a.b thing"),
        `${file("x-any: thing")}\n---\n${file("x-any: thing")}`,
      ];
      for (const compose of running) expect(() => pinnedImages(app(compose)), compose).to.throw(Malformed);
      const scripts = ["pre_launch_script", "init_script", "bash_script", "something_new"];
      for (const name of scripts) {
        expect(pinnedImages(app(file(""), { [name]: "" })).size, name).to.equal(1);
        expect(() => pinnedImages(app(file(""), { [name]: "x" })), name).to.throw(Malformed, name);
      }
    });

    it("do not expand exponentially", () => {
      const bomb = [
        "a: &a [x,x,x,x,x,x,x,x,x]",
        ..."bcdefghi"
          .split("")
          .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${"abcdefghi"[index]}`).join(",")}]`),
      ].join("\n");
      const started = Date.now();
      expect(() => pinnedImages(app(`${bomb}\nservices: {a: {image: r}}`))).to.throw(Malformed);
      expect(Date.now() - started).to.be.lessThan(2_000);
    });
  });
});

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => from + index);
