import { expect } from "chai";
import { analyse } from "../../../executor/sandbox/analyse";
import { responseOf } from "../../support/sandbox";

/** The value of `approved` in code without `main` when the caller sends it. */
const seen = (code: string): Promise<unknown> =>
  responseOf(`${code}; Actions.setResponse({ response: String(approved) });`, {
    params: { approved: "by the caller" },
  });

describe("attack: a parameter in place of a variable of the code", () => {
  for (const [how, code] of Object.entries({
    "var without a value": "var approved",
    "var that is set only sometimes": "if (false) { var approved = true }",
    "var of a loop that never runs": "for (var approved of []);",
    "var in a pattern": "if (false) { var { a: [approved = 1] } = {} }",
    "var after its use": "void approved; var approved",
    "let without a value": "let approved",
  })) {
    it(`${how} is the code's`, async () => {
      expect(await seen(code)).to.equal("undefined");
    });
  }

  it("a function of that name is the code's, also inside a block", async () => {
    expect(await seen("function approved() { return 1 }")).to.contain("return 1");
    expect(await seen("if (false) { function approved() {} }")).to.equal("undefined");
  });

  it("functions' local variables, and undeclared names, are read from the parameters as documented", async () => {
    expect(await seen("(function () { var approved })(); class A { static { var approved } }")).to.equal(
      "by the caller",
    );
    expect(await seen("const f = () => { var approved = 1 }")).to.equal("by the caller");
  });

  it("globals created by a script are found in any code, in linear time", () => {
    expect(
      analyse(
        "var a, { b, c: d = 1, ...e } = {}, [f, [g]] = []; function h(i) { var j } for (var k in {}); try {} " +
          "catch (l) { var m }",
      ).globals.sort(),
    ).to.deep.equal([..."abdefghkm"]);
    expect(analyse("export var a = 1; function b() {}").globals).to.deep.equal([]);
  });
});
