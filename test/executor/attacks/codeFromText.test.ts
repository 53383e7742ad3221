/** Only the code a CID names may run: the guest cannot compile code from text. */
import { expect } from "chai";
import { valueOf } from "../../support/sandbox";

const WAYS: Record<string, string> = {
  eval: `eval("1 + 1")`,
  "indirect eval": `(0, globalThis.eval)("1 + 1")`,
  Function: `Function("return 2")()`,
  "new Function": `new Function("return 2")()`,
  "constructor of a function": `(() => {}).constructor("return 2")()`,
  "constructor of an async function": `(async () => {}).constructor("return 2")()`,
  "constructor of a generator": `(function* () {}).constructor("return 2")().next()`,
  "constructor of an async generator": `(async function* () {}).constructor("return 2")().next()`,
  "constructor of a method": `({ m() {} }).m.constructor("return 2")()`,
  "constructor of a class": `(class {}).constructor("return 2")()`,
  "constructor of a bound function": `(() => {}).bind().constructor("return 2")()`,
  "constructor of a host function": `console.log.constructor("return 2")()`,
  "constructor of a native function": `Math.max.constructor("return 2")()`,
  "constructor of an Actions function": `Actions.signMessage.constructor("return 2")()`,
  "constructor through a proxy": `new Proxy(() => {}, {}).constructor("return 2")()`,
  "constructor through the prototype": `Object.getPrototypeOf(async () => {}).constructor("return 2")()`,
  "Reflect.construct": `Reflect.construct(Object.getPrototypeOf(() => {}).constructor, ["return 2"])()`,
  "restoring the constructor": `(delete Function.prototype.constructor, Function.prototype.constructor("return 2")())`,
  "a subclass of Function": `new (class extends Function {})("return 2")()`,
  "text to setTimeout": `setTimeout("globalThis.ran = 1", 1)`,
  "text to setInterval": `setInterval("globalThis.ran = 1", 1)`,
  "dynamic import": `await import("data:text/javascript,export default 2")`,
  WebAssembly: `new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]))`,
  importScripts: `importScripts("data:text/javascript,1")`,
  ShadowRealm: `new ShadowRealm().evaluate("1 + 1")`,
};

describe("attack: code made from text", () => {
  for (const [name, expression] of Object.entries(WAYS)) {
    it(`${name} compiles none`, async () => {
      const probe =
        `await (async () => { try { return ["made", String(${expression})]; } catch (error) { return ` +
        `["refused", ` +
        "error.message]; } })()";
      expect((await valueOf(probe)) as string[]).to.have.property("0", "refused");
    });
  }
});
