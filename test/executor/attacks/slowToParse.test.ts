import { expect } from "chai";
import { analyse, Unparsable } from "../../../executor/sandbox/analyse";
import { run } from "../../support/sandbox";

const KILOBYTES = 305_000;
/** As many distinct declarations as fit. */
function declarations(of: (name: string) => string): string {
  const parts: string[] = [];
  for (let i = 0, length = 0; length < KILOBYTES; i++)
    length += parts[parts.push(of(`a${i.toString(36)}`)) - 1]?.length ?? 0;
  return parts.join("");
}
const kinds: Record<string, string> = {
  let: declarations((name) => `let ${name};`),
  "one let": `let ${declarations((name) => `${name},`)}z;`,
  var: declarations((name) => `var ${name};`),
  functions: declarations((name) => `function ${name}(){}`),
  exports: declarations((name) => `export let ${name};`),
  imports: declarations((name) => `import ${name} from "x";`),
  "private names": `class A{${declarations((name) => `#${name};`)}}`,
  "named groups": `/${declarations((name) => `(?<${name}>x)`)}/;`,
};
const cpuMs = (work: () => void): number => {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
};

describe("attack: code that is slow to parse", function () {
  this.timeout(60_000);

  for (const [kind, code] of Object.entries(kinds)) {
    it(`300 kB of declarations (${kind}) are parsed in time linear in their number`, () => {
      const half = code.slice(0, code.length / 2);
      cpuMs(() => analyse(`${code};`));
      const whole = Math.min(...[1, 2].map(() => cpuMs(() => analyse(code))));
      expect(whole, `${half.length} characters more`).to.be.below(1_500);
    });
  }

  it("a name declared twice is still invalid code, reported by the engine", async () => {
    for (const code of [
      "let a; let a;",
      "let a; var a;",
      "function f() { const b = 1; var b; }",
      "export { nowhere };",
    ]) {
      const { error } = await run(code);
      expect(error?.code, code).to.equal("invalid_code");
    }
    expect(() => analyse("let = ;")).to.throw(Unparsable);
  });

  it("code that exceeds the parse limit is ended, and charged to the caller", async () => {
    const { error, fault, durationMs } = await run("x=[y=>({z:d}),e?.f??g];".repeat(300_000), {
      // A child that has parsed code of this CID would not be limited.
      cid: "QmSlowToParse",
      limits: { parseMs: 100 },
    });
    expect(error).to.include({ code: "limit_exceeded", message: "the code took longer than 100 ms to parse" });
    expect(fault).to.equal(undefined);
    // Without what it waited for a core.
    expect(durationMs).to.be.within(10, 2_000);
  });

  it("code that is parsed in time may run for its full time", async () => {
    const outcome = await run(
      "async function main() { await new Promise((resolve) => setTimeout(resolve, 300)); return 1; }",
      { limits: { parseMs: 250 } },
    );
    expect(outcome.response, JSON.stringify(outcome)).to.equal("1");
  });
});
