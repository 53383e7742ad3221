import { expect } from "chai";
import { createHash } from "node:crypto";
import { FetchFailed, type Fetcher } from "../../../executor/fetcher/types";
import { ModuleCache, resolveImport } from "../../../executor/sandbox/imports";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import { RunCancelled, type RunOutcome, type SandboxPool } from "../../../executor/sandbox/types";
import { MIB, RUN_LIMITS } from "../../../protocol/limits";
import { jobOf, noFetcher, silent } from "../../support/sandbox";

const ORIGIN = "https://modules.test/npm/";
const hashOf = (source: string): string => `sha384-${createHash("sha384").update(source).digest("base64")}`;

const sources = new Map<string, string>();
const fetched: string[] = [];
let onFetch = (_signal?: AbortSignal): void | Promise<void> => undefined;
const fetcher: Fetcher = {
  ...noFetcher,
  fetchModule: async (url, maxBytes, { signal } = {}) => {
    fetched.push(url);
    await onFetch(signal);
    const source = sources.get(url);
    if (source === undefined) throw new FetchFailed("not_found", `${url} does not exist`);
    if (source.length > maxBytes) throw new FetchFailed("too_large", "too large");
    return Buffer.from(source);
  },
};

/** Publishes a module and returns its specifier. */
function publish(name: string, source: string, path = ""): string {
  sources.set(`${ORIGIN}${name}${path || "/+esm"}`, source);
  return `${name}${path}#${hashOf(source)}`;
}

describe("imports", () => {
  let pool: SandboxPool;
  before(async () => {
    pool = await createSandboxPool({ limits: RUN_LIMITS, size: 2, logger: silent, fetcher, moduleOrigin: ORIGIN });
  });
  after(() => pool.close(0));
  beforeEach(() => {
    fetched.splice(0);
    onFetch = () => undefined;
  });

  const here = (code: string): Promise<RunOutcome> => pool.run(jobOf(code));
  const refused = (outcome: RunOutcome, message: string) => {
    expect(outcome.error?.code, JSON.stringify(outcome)).to.equal("invalid_code");
    expect(outcome.error?.message).to.contain(message);
    expect(outcome.logs).to.equal("");
  };

  it("a specifier of any length is the author's error, never a service fault", async () => {
    const outcome = await here(
      `import "lib@1.2.3/${"x".repeat(3_000)}#sha384-${"A".repeat(64)}";\nasync function main() {}`,
    );
    refused(outcome, "at most 2048 characters");
    expect(outcome.fault).to.equal(undefined);
  });

  it("an exact version with its hash is fetched, checked and available in main", async () => {
    const specifier = publish("lib@1.2.3", "export const twice = (n) => n * 2; export default 'lib';");
    const outcome = await here(
      `import name, { twice } from "${specifier}";\nasync function main() { return [name, twice(21), ` +
        "Actions.showImportDetails()]; }",
    );
    expect(JSON.parse(outcome.response)).to.deep.equal([
      "lib",
      42,
      [
        {
          specifier,
          url: `${ORIGIN}lib@1.2.3/+esm`,
          integrity: specifier.split("#")[1],
          hash: specifier.split("#")[1],
          bytes: 56,
        },
      ],
    ]);
    expect(outcome.logs).to.contain("lib@1.2.3");
  });

  it("a module is fetched in a fetch's place and memory, which a cached one does not take", async () => {
    const specifier = publish("shared@1.0.0", "export default 'shared';");
    const held: unknown[] = [];
    const code = `import one from "${specifier}";\nasync function main() { return one; }`;
    onFetch = () => {
      const { fetches, answerBytes } = pool.stats().held;
      held.push([fetches, answerBytes]);
    };
    for (let time = 0; time < 2; time++) expect((await here(code)).response).to.equal('"shared"');
    expect(held).to.deep.equal([[1, RUN_LIMITS.importBytes]]);
    expect(pool.stats().held).to.include({ fetches: 0, answerBytes: 0 });
  });

  /** The signal of the next fetch, which the module's origin does not answer before that. */
  function untilFetched(answered: Promise<void> = new Promise(() => undefined)): Promise<AbortSignal | undefined> {
    return new Promise((resolve) => (onFetch = (signal) => (resolve(signal), answered)));
  }

  it("a run that ends gives back what its import holds, and its fetch ends, but not that of another run", async () => {
    const specifier = publish("slow@1.0.0", "export default 'slow';");
    const code = `import one from "${specifier}";\nasync function main() { return one; }`;
    const cancelled = new AbortController();
    const first = untilFetched();
    const run = pool.run(jobOf(code, { signal: cancelled.signal })).catch((error: unknown) => error);
    const signal = await first;
    const answered = Promise.withResolvers<undefined>();
    const second = untilFetched(answered.promise);
    const other = here(code);
    const othersSignal = await second;
    cancelled.abort();
    expect(await run).to.be.instanceOf(RunCancelled);
    await new Promise(setImmediate);
    expect(pool.stats().held).to.include({ fetches: 1, answerBytes: RUN_LIMITS.importBytes });
    expect([signal?.aborted, othersSignal?.aborted]).to.deep.equal([true, false]);
    answered.resolve(undefined);
    expect((await other).response).to.equal('"slow"');
    expect(pool.stats().held).to.include({ fetches: 0, answerBytes: 0 });
  });

  it("a run whose time is over gives back what its import holds", async () => {
    const code = `import "${publish("silent@1.0.0", "")}";\nasync function main() {}`;
    const fetching = untilFetched();
    const run = pool.run(jobOf(code, { limits: { wallMs: 300 } }));
    const signal = await fetching;
    expect((await run).error?.code).to.equal("timed_out");
    await new Promise(setImmediate);
    expect(pool.stats().held).to.include({ fetches: 0, answerBytes: 0 });
    expect(signal?.aborted).to.equal(true);
  });

  it("an import that others wait for ends with its run although its module never arrives", async () => {
    const specifier = publish("large@1.0.0", "export default 'large';");
    const code = `import one from "${specifier}";\nfunction main() { return one; }`;
    const limits = { importBytes: 100 * MIB };
    const fetching = untilFetched();
    const greedy = pool.run(jobOf(code, { account: "greedy", limits }));
    const signal = await fetching;
    onFetch = () => undefined;
    const other = await pool.run(jobOf(code, { account: "other", key: "other", limits }));
    expect(other.response).to.equal('"large"');
    expect((await greedy).error?.code).to.equal("preempted");
    expect(signal?.aborted).to.equal(true);
  }).timeout(20_000);

  it("a module is fetched once for all importers", async () => {
    const specifier = publish("once@1.0.0", "export default 1;");
    for (const key of ["a", "b"])
      expect(
        (await pool.run(jobOf(`import one from "${specifier}"; function main() { return one; }`, { key }))).response,
      ).to.equal("1");
    expect(fetched).to.have.lengthOf(1);
  });

  it("a cached module that is dropped while its user waits for memory is fetched again", async () => {
    const modules = new ModuleCache(fetcher, ORIGIN, 100);
    const [one, other] = ["one", "other"].map((name) => publish(`${name}@1.0.0`, `/* ${name} */`.padEnd(60)));
    const { signal: over } = new AbortController();
    const user = {
      account: "account",
      maxBytes: 100,
      over,
      fetching: (fetch: (over: AbortSignal) => Promise<Buffer>) => fetch(over),
      holding: async (): Promise<unknown> => undefined,
    };
    await modules.get(one ?? "", user);
    const { source } = await modules.get(one ?? "", { ...user, holding: () => modules.get(other ?? "", user) });
    expect(source.toString()).to.equal("/* one */".padEnd(60));
    expect(fetched).to.have.lengthOf(3);
  });

  it("paths, scopes and full URLs below the origin are equivalent", async () => {
    const specifier = publish("@scope/pkg@2.0.0-rc.1", "export default 'deep';", "/dist/index.js");
    for (const form of [specifier, `${ORIGIN}${specifier}`])
      expect((await here(`import x from "${form}"; function main() { return x; }`)).response).to.equal('"deep"');
  });

  it("modules may import others by version and hash", async () => {
    const inner = publish("inner@1.0.0", "export default 20;");
    const outer = publish("outer@1.0.0", `import n from "${inner}"; export default n + 1;`);
    expect((await here(`import n from "${outer}"; function main() { return n; }`)).response).to.equal("21");
  });

  it("modules may await at top level", async () => {
    const slow = publish("slow@1.0.0", "export default await new Promise((done) => setTimeout(done, 20, 7));");
    const outer = publish("around@1.0.0", `import n from "${slow}"; export default n + 1;`);
    expect((await here(`import n from "${outer}"; function main() { return n; }`)).response).to.equal("8");
    const broken = publish(
      "broken@2.0.0",
      "await new Promise((done) => setTimeout(done, 5)); throw new Error('late');",
    );
    const outcome = await here(`import "${broken}"; function main() { return 1; }`);
    expect(outcome.error).to.include({ code: "threw", message: "late" });
  });

  it("bytes with another hash are refused, and the actual hash is reported", async () => {
    const specifier = publish("lib@3.0.0", "export default 'changed';").replace(
      /#.*/,
      `#${hashOf("export default 'original';")}`,
    );
    refused(await here(`import x from "${specifier}";`), hashOf("export default 'changed';"));
  });

  const bad: [string, string][] = [
    ["lib@1.2.3", "has no hash"],
    ["lib@1.2.3#sha256-abc", "has no sha384 hash"],
    [`lib@^1.2.3#${hashOf("")}`, "exact version"],
    [`lib@latest#${hashOf("")}`, "exact version"],
    [`lib#${hashOf("")}`, "exact version"],
    [`./local.js#${hashOf("")}`, "exact version"],
    [`node:fs#${hashOf("")}`, "exact version"],
    [`fs`, "has no hash"],
    [`https://elsewhere.test/lib@1.2.3#${hashOf("")}`, "exact version"],
    [`https://modules.test/npm/../lib@1.2.3#${hashOf("")}`, "exact version"],
    [`lib@1.2.3/../../secret@1.0.0/x.js#${hashOf("")}`, "leaves its package"],
    [`lib@1.2.3/%2e%2e/%2e%2e/x#${hashOf("")}`, "exact version"],
    [`data:text/javascript,export default 1#${hashOf("")}`, "exact version"],
  ];
  for (const [specifier, message] of bad) {
    it(`${specifier.replace(/#sha384.*/, "#…")} is refused and nothing is fetched`, async () => {
      refused(await here(`import x from "${specifier}";`), message);
      expect(fetched).to.deep.equal([]);
    });
  }

  for (const nested of [
    `import "/npm/other@1.0.0/+esm"`,
    `import "https://modules.test/npm/other@1.0.0/+esm"`,
    `export * from "./other.js"`,
  ]) {
    it(`a module that contains "${nested}" is refused, naming it`, async () => {
      const specifier = publish(`nested${nested.length}@1.0.0`, `${nested};`);
      refused(await here(`import x from "${specifier}";`), "must be self-contained");
    });
  }

  it("a module that is missing or does not parse is the author's error", async () => {
    refused(await here(`import x from "missing@1.0.0#${hashOf("")}";`), "does not exist");
    refused(await here(`import x from "${publish("broken@1.0.0", "export default = ;")}";`), "does not parse");
  });

  it("an import of a name the module does not export is invalid code", async () => {
    const outcome = await here(`import { nothing } from "${publish("few@1.0.0", "export default 1;")}";`);
    expect(outcome.error?.code).to.equal("invalid_code");
    expect(outcome.error?.message).to.contain("nothing");
  });

  it("an exception in a module is the run's error", async () => {
    const outcome = await here(`import "${publish("throws@1.0.0", "throw new Error('inside');")}";`);
    expect(outcome.error).to.include({ code: "threw", message: "inside" });
  });

  it("always resolves below the origin", () => {
    const { url } = resolveImport(`lib@1.0.0/a/./b/../c.js#${hashOf("")}`, ORIGIN);
    expect(url).to.equal(`${ORIGIN}lib@1.0.0/a/c.js`);
  });
});
