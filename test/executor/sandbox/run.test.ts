import { expect } from "chai";
import { answering, responseOf, run } from "../../support/sandbox";

describe("running an action", () => {
  describe("the response", () => {
    const values: unknown[] = [42, "42", "", 0, false, true, null, [1, [2]], { a: { b: null } }, "ünï😀", 1.5e300];
    for (const value of values) {
      it(`keeps ${JSON.stringify(value)} unchanged`, async () => {
        expect(
          await responseOf(`async function main({ value }) { return value; }`, { params: { value } }),
        ).to.deep.equal(value);
      });
    }

    it("is null when nothing was returned or set", async () => {
      expect(await responseOf(`async function main() {}`)).to.equal(null);
      expect(await responseOf(`const x = 1;`)).to.equal(null);
      expect(await responseOf(`async function main() { return () => 1; }`)).to.equal(null);
    });

    it("may be set instead of returned, and the last one set counts", async () => {
      expect(
        await responseOf(
          `async function main() {
            Actions.setResponse({ response: "1" });
            Actions.setResponse({ response: { two: 2 } });
          }`,
        ),
      ).to.deep.equal({ two: 2 });
    });

    it("is main's return value when the code does both", async () => {
      expect(await responseOf(`async function main() { Actions.setResponse({ response: 1 }); return 2; }`)).to.equal(2);
    });

    it("must be JSON: a bigint or a cycle is the action's error, and says so", async () => {
      for (const code of [
        `async function main() { return 1n; }`,
        `async function main() { const a = {}; a.a = a; return a; }`,
      ]) {
        const { error } = await run(code);
        expect(error).to.include({ code: "threw" });
        expect(error?.message).to.contain("the response is not JSON");
      }
    });
  });

  describe("forms of code", () => {
    const forms: Record<string, string> = {
      "a function main": `async function main({ n }) { return n + 1; }`,
      "a synchronous main": `function main({ n }) { return n + 1; }`,
      "an arrow main": `const main = async ({ n }) => n + 1;`,
      "code that waits at top level": `let value = await new Promise((done) => setTimeout(done, 20, 1));
      Actions.setResponse({ response: n + value }); // the end`,
      "a main after code that waits": `const one = await new Promise((done) => setTimeout(done, 20, 1));
      const main = ({ n }) => n + one;`,
      "code with top-level await": `const one = await Promise.resolve(1);
      async function main({ n }) {
        return n + one;
      }`,
      "a module that exports main": `export async function main({ n }) { return n + 1; }`,
      "a module with a default export": `export default async ({ n }) => n + 1;`,
      "a default export named main": `export default async function main({ n }) { return n + 1; }`,
      "a module that waits at top level": `export const one = await new Promise((done) => setTimeout(done, 20, 1));
      async function main({ n }) { return n + one; }`,
      "a module that waits, with a default export": `const one = await new Promise((done) => setTimeout(done, 20, 1));
      export default ({ n }) => n + one;`,
      "a module that waits, without an entry": `export const one = await new Promise((done) => setTimeout(done, 20, 1));
      Actions.setResponse({ response: jsParams.n + one });`,
      "code that awaits what is in brackets": `Actions.setResponse({ response: n + await (Promise.resolve(1)) });`,
      "code that awaits a list": `const list = await [1];
      Actions.setResponse({ response: n + list[0] });`,
      "code that awaits a template": "const one = await \`1\`; Actions.setResponse({ response: n + Number(one) });",
      "code that awaits a signed number": `const one = await +"1";
      Actions.setResponse({ response: n + one });`,
      "code in which something else is called await": `var await = (x) => x;
      Actions.setResponse({ response: n + await (1) });`,
      "code with a parameter called await": `const add = function (await) { return await + (1); };
      Actions.setResponse({ response: add(n) });`,
      "code that calls main itself": `async function main() { Actions.setResponse({ response: n + 1 }); }\nmain();`,
      "code that awaits main itself": `async function main() {
        Actions.setResponse({ response: n + 1 });
      }
      await main();`,
      "an immediately called function": `(async () => { await null; LitActions.setResponse({ response: n + 1 }); })();`,
      "a called arrow": `const go = async () => {
        await null;
        Lit.Actions.setResponse({ response: jsParams.n + 1 });
      };
      go();`,
      "plain statements": `Actions.setResponse({ response: n + 1 });`,
      "code that declares names of globals": `const fetch = 1, ethers = 2, crypto = 3, URL = 4;
      function Actions() {}
      async function main({ n }) {
        return n + fetch;
      }`,
    };
    for (const [name, code] of Object.entries(forms)) {
      it(`${name} runs`, async () => {
        expect(await responseOf(code, { params: { n: 1 } })).to.equal(2);
      });
    }

    it("calls main once, also when the code calls it itself", async () => {
      const { logs } = await run(`async function main() { console.log("called"); }\nmain().catch(() => 0);`);
      expect(logs).to.equal("called\n");
    });

    it("code that does not parse is invalid_code, with the position, and nothing ran", async () => {
      const outcome = await run(`async function main() {\n  return 1 +;\n}`);
      expect(outcome).to.deep.include({ response: "null", logs: "" });
      expect(outcome.error?.code).to.equal("invalid_code");
      expect(outcome.error?.message).to.contain("(2:12)");
    });
  });

  describe("errors", () => {
    it("a thrown error keeps its logs, name, message and line", async () => {
      const outcome = await run(
        [
          `console.log("first");`,
          `async function main() {`,
          `  console.log("second");`,
          `  throw new TypeError("no good");`,
          `}`,
        ].join("\n"),
      );
      expect(outcome.logs).to.equal("first\nsecond\n");
      expect(outcome.response).to.equal("null");
      expect(outcome.error).to.include({ code: "threw", message: "TypeError: no good" });
      expect(outcome.error?.stack).to.contain("action.js:4");
      expect(outcome.fault).to.equal(undefined);
    });

    const thrown: Record<string, string> = {
      "at top level": `throw new Error("here");`,
      "in main": `async function main() { throw new Error("here"); }`,
      "in an awaited promise": `async function main() { await Promise.reject(new Error("here")); }`,
      "in a timer": `async function main() {
        setTimeout(() => {
          throw new Error("here");
        }, 1);
        await new Promise(() => {});
      }`,
      "after code that waits at top level": `await new Promise((done) => setTimeout(done, 5));
      throw new Error("here");`,
      "in a module that waits": `export const x = await new Promise((done) => setTimeout(done, 5));
      throw new Error("here");`,
      "in a module that goes on": `export const x = await null;
      throw new Error("here");`,
      "in a module": `export const x = 1; throw new Error("here");`,
    };
    for (const [where, code] of Object.entries(thrown)) {
      it(`an error ${where} is the run's error`, async () => {
        expect((await run(code)).error).to.include({ code: "threw", message: "here" });
      });
    }

    const oddities = [
      "undefined",
      "null",
      "0",
      `"text"`,
      "{}",
      "Symbol('s')",
      "() => {}",
      "new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 2; } })",
      "Object.assign(new Error(), { get message() { throw 1; } })",
    ];
    for (const value of oddities) {
      it(`throwing ${value} is reported as an error`, async () => {
        for (const code of [`throw ${value};`, `async function main() { throw ${value}; }`])
          expect((await run(code)).error?.code).to.equal("threw");
      });
    }
  });

  describe("logs", () => {
    it("are lines, strings unchanged and values readable", async () => {
      const { logs } = await run(
        `console.log("a", 1, { b: [1n, null] });
        console.warn("w");
        console.error(new Error("e").message);
        console.info(undefined);
        console.debug();`,
      );
      expect(logs).to.equal("a 1 { b: [ 1n, null ] }\nw\ne\nundefined\n\n");
    });

    it("have how often and how long, and no method of the web's console is missing", async () => {
      const { logs, error } = await run(
        `console.time(); for (const since = Date.now(); Date.now() < since + 20; ); console.time();
        console.timeLog(undefined, "so far"); console.timeEnd(); console.timeEnd();
        console.count("n"); console.countReset("n"); console.count("n");
        console.groupCollapsed("group"); console.dirxml("tree"); console.clear();`,
      );
      expect(error).to.equal(undefined);
      expect(logs).to.match(/^default: \d\d+ ms so far\ndefault: \d+ ms\n/);
      expect(logs.split("\n").slice(2)).to.deep.equal(["default: not begun", "n: 1", "n: 1", "group", "tree", ""]);
    });

    it("survive values that throw when they are inspected", async () => {
      const { logs, error } = await run(
        `console.log(new Proxy({}, { ownKeys() { throw 1; }, get() { throw 2; } })); console.log("after");`,
      );
      expect(error).to.equal(undefined);
      expect(logs.endsWith("after\n")).to.equal(true);
    });

    it("arrive in order, in any number", async () => {
      const { logs } = await run(`for (let i = 0; i < 3000; i++) console.log(i);`);
      expect(logs).to.equal(Array.from({ length: 3000 }, (_, i) => `${i}\n`).join(""));
    });
  });

  it("reaches the outside only once its permission is known", async () => {
    const code = `async function main() {
      let came = "nothing";
      fetch("https://example.com").then(() => (came = "an answer"), () => (came = "a refusal"));
      await new Promise((resolve) => setTimeout(resolve, 500));
      return came;
    }`;
    expect(await responseOf(code)).to.equal("a refusal");
    expect(await responseOf(code, { permitted: () => new Promise(() => {}) })).to.equal("nothing");
  });

  it("ends when main settles: pending timers and ops do not delay it", async () => {
    const started = Date.now();
    const code = `async function main() {
      setInterval(() => console.log("tick"), 1);
      setTimeout(() => {}, 60_000);
      Actions.signMessage({ pkpId: "0x1", message: "m" });
      return "done";
    }`;
    expect(await responseOf(code, { ops: () => new Promise(() => {}) })).to.equal("done");
    expect(Date.now() - started).to.be.below(2_000);
  });

  it("measures execution time, not waiting", async () => {
    const { durationMs } = await run(
      `async function main() { await new Promise((resolve) => setTimeout(resolve, 1_000)); }`,
    );
    // What it waits for a core is not billed.
    expect(durationMs).to.be.within(500, 2_000);
  });

  it("has no clock finer than a millisecond", async () => {
    expect(
      await responseOf(`async function main() { return [performance.now(), Date.now()].every(Number.isInteger); }`),
    ).to.equal(true);
  });

  it("gets answers of ops with their types", async () => {
    const ops = answering({ Encrypt: "0x01", Decrypt: "" });
    expect(
      await responseOf(
        `async function main() {
          return [
            await Actions.Encrypt({ pkpId: "0x1", message: "" }),
            await Actions.Decrypt({ pkpId: "0x1", ciphertext: "c" }),
          ];
        }`,
        { ops },
      ),
    ).to.deep.equal(["0x01", ""]);
  });
});
