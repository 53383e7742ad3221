/** Known sandbox escapes: each must reach no object of the host. */
import { expect } from "chai";
import { run, valueOf } from "../../support/sandbox";

describe("attack: reaching the host's objects", () => {
  it("finds none of Node's globals", async () => {
    const names = [
      "process",
      "require",
      "module",
      "exports",
      "__dirname",
      "Buffer",
      "global.process",
      "globalThis.process",
      "ivm",
      "prelude",
      "library",
    ];
    const found = await valueOf(
      `[${names
        .map((name) => `(() => { try { return typeof ${name}; } catch { return ` + `"undefined"; } })()`)
        .join(",")}]`,
    );
    expect(found).to.deep.equal(names.map(() => "undefined"));
  });

  it("finds nothing through the constructor chain of any given object", async () => {
    const values = [
      "Actions",
      "console",
      "crypto",
      "crypto.subtle",
      "fetch",
      "setTimeout",
      "new Headers()",
      "performance",
      "Lit",
      "LitAuth",
      "LitHeaders",
      "jsParams",
      "params",
      "AbortSignal.abort()",
      "new URL('http://a')",
    ];
    const escapes = values.map(
      (value) =>
        `(() => { try { return typeof ${value}.constructor.constructor("return process")(); } catch { return ` +
        `"refused"; } })()`,
    );
    expect(await valueOf(`[${escapes.join(",")}]`)).to.deep.equal(values.map(() => "refused"));
  });

  it("gets no stack frames as objects", async () => {
    const code = `
      async function main() {
        let frames = 0;
        try { Error.prepareStackTrace = (error, sites) => { frames = sites.length; return sites; }; } catch {}
        try {
          Object.defineProperty(Error, "prepareStackTrace", {
            value: (error, sites) => {
              frames = sites.length;
            },
          });
        } catch {}
        let kind;
        try { await Actions.signMessage({}); } catch (error) { kind = typeof error.stack; }
        return [frames, kind];
      }`;
    expect(JSON.parse((await run(code)).response)).to.deep.equal([0, "string"]);
  });

  it("sees no path and no line of the host in any stack", async () => {
    const code = `
      async function main() {
        const stacks = [new Error("own").stack];
        const attempts = [
          () => Actions.signMessage({}),
          () => Actions.signEcdsa(),
          () => fetch("x:"),
          () => eval("1"),
          () => new TextDecoder("no"),
          () => setTimeout("x"),
        ];
        for (const attempt of attempts)
          try { await attempt(); } catch (error) { stacks.push(error.stack); }
        return stacks.join("\\n");
      }`;
    const outcome = await run(code);
    expect(outcome.response).to.not.match(/\/dist\/|\/executor\/|node_modules|node:|isolated-vm|\.ts:/);
  });

  it("keeps the host's lines out of the error of a run", async () => {
    for (const code of [
      `throw new Error("top")`,
      `async function main() { throw new Error("in main"); }`,
      `async function main() { await Actions.signMessage({ pkpId: 1, message: 2 }); }`,
      `const x = ;`,
    ]) {
      const { error } = await run(code);
      expect(JSON.stringify(error)).to.not.match(/\/dist\/|\/executor\/|node_modules|node:|isolated-vm|keywright:/);
    }
  });

  it("learns nothing from a proxy given as an argument", async () => {
    const code = `
      async function main() {
        const seen = [];
        const spy = new Proxy({}, {
          get(target, name, receiver) { seen.push(String(name)); return name === "pkpId" ? "0x1" : undefined; },
          ownKeys() { return ["pkpId"]; },
          getOwnPropertyDescriptor() { return { value: 1, enumerable: true, configurable: true }; },
        });
        try { await Actions.getPrivateKey(spy); } catch {}
        return seen.every((name) => name === "pkpId");
      }`;
    const outcome = await run(code, { ops: () => ({ ok: false, code: "nothing", message: "nothing" }) });
    expect(outcome.response).to.equal("true");
  });

  it("gets only plain strings back when it patches what the bridge might use", async () => {
    const code = `
      const seen = [];
      const watch = (object, name) => {
        const original = object[name];
        object[name] = function (...args) {
          for (const arg of args) if (typeof arg === "function") seen.push(String(arg).slice(0, 200));
          return original.apply(this, args);
        };
      };
      const patched = [
        [Map.prototype, ["get", "set", "delete"]],
        [WeakMap.prototype, ["get", "set"]],
        [JSON, ["parse", "stringify"]],
        [Promise.prototype, ["then"]],
        [Array.prototype, ["push", "map", "forEach"]],
        [Object, ["entries", "assign", "defineProperty"]],
        [Reflect, ["apply"]],
        [Function.prototype, ["call", "apply", "bind"]],
      ];
      for (const [object, names] of patched) for (const name of names) watch(object, name);
      async function main() {
        await Actions.signMessage({ pkpId: "0x1", message: "m" });
        await fetch("http://example.com/").catch(() => 0);
        console.log(1, {}); crypto.randomUUID(); new TextEncoder().encode("x");
        await new Promise((resolve) => setTimeout(resolve, 1));
        return seen.filter((text) => text.includes("[native code]"));
      }`;
    const outcome = await run(code, { ops: () => ({ ok: true, value: '"0x"' }) });
    // The only native functions that pass through patched code are the language's own resolvers.
    const leaked = (JSON.parse(outcome.response) as string[] | null) ?? [];
    expect(
      leaked.every((text) => /^function \(\) \{ \[native code\] \}$/.test(text)),
      outcome.response,
    ).to.equal(true);
  });

  it("is not misled by subclasses and species in results", async () => {
    const code = `
      class Evil extends Array {
        static get [Symbol.species]() {
          return function () {
            return globalThis;
          };
        }
        toJSON() {
          return "evil";
        }
      }
      async function main() { return { list: Evil.from([1, 2]), promise: "p" }; }`;
    expect(await run(code)).to.deep.include({ response: '{"list":"evil","promise":"p"}' });
  });

  it("cannot reach another run: no state outlives an isolate", async () => {
    await run(
      `globalThis.left = "behind";
      Array.prototype.left = "behind";
      Actions.left = 1;
      async function main() {
        return 1;
      }`,
    );
    expect(await valueOf(`[typeof globalThis.left, typeof [].left, typeof Actions.left]`)).to.deep.equal([
      "undefined",
      "undefined",
      "undefined",
    ]);
  });

  it("cannot replace or extend the given functions", async () => {
    const code = `
      async function main() {
        "use strict";
        const results = [];
        const attempts = [
          () => { Actions.signMessage = 1; },
          () => { Actions.extra = 1; },
          () => { Lit.Actions = 1; },
          () => { console.log = 1; },
          () => { crypto.subtle.digest = 1; },
        ];
        for (const attempt of attempts)
          try { attempt(); results.push("changed"); } catch { results.push("refused"); }
        return results;
      }`;
    expect(JSON.parse((await run(code)).response)).to.deep.equal([
      "refused",
      "refused",
      "refused",
      "refused",
      "refused",
    ]);
  });
});
