// docs/events.md shows every event as the contract emits it, decoded.
import { takeSnapshot } from "@nomicfoundation/hardhat-network-helpers";
import { expect } from "chai";
import { AbiCoder, concat, getBytes } from "ethers";
import { ethers } from "hardhat";
import { readFileSync, writeFileSync } from "node:fs";
import prettier from "prettier";
import ts from "typescript";
import { AccountManager__factory } from "../../typechain-types";
import { must } from "../support/must";
import { everyEvent, eventsPage } from "./support/eventsDoc";
import { packedId } from "./support/model";
import { World } from "./support/world";

const PAGE = "docs/events.md";

/** The page's program with these values for what it takes as given; what it prints. */
async function printed(given: Readonly<Record<string, unknown>>): Promise<unknown[][]> {
  const source = must(/```ts\n([^]*?)```/.exec(readFileSync(PAGE, "utf8"))?.[1]).replace(/^import .*$/gm, "");
  const { target, module } = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  const program = ts.transpileModule(source, { compilerOptions: { target, module } }).outputText;
  const lines: unknown[][] = [];
  const all = { ...given, console: { log: (...line: unknown[]) => void lines.push(line) } };
  const run = new Function(...Object.keys(all), `return (async () => {${program}})();`) as (
    ...all: unknown[]
  ) => unknown;
  await run(...Object.values(all));
  return lines;
}

describe("docs/events.md", () => {
  it("shows every event of the contract with a sample that the contract emitted", async () => {
    const { restore } = await takeSnapshot(); // the sample is dated in the future
    const config = await prettier.resolveConfig(PAGE);
    const page = await prettier.format(await eventsPage(await everyEvent()), {
      ...config,
      parser: "markdown",
      plugins: [],
    });
    await restore();
    if (process.env.KEYWRIGHT_WRITE_DOCS === "1") writeFileSync(PAGE, page);
    expect(readFileSync(PAGE, "utf8")).to.equal(page);
  });

  it("has a program that follows accounts whose names are no UTF-8 and contain U+0000", async () => {
    const { restore } = await takeSnapshot();
    const { manager, cast } = await World.create();
    const accountId = packedId(cast.stranger.address);
    const name = "0xff0061";
    for (const [functionName, values] of [
      ["newChainSecuredAccount", [name, name]],
      ["addGroup", [accountId, name, name, [], []]],
    ] as const) {
      const { selector, inputs } = manager.interface.getFunction(functionName);
      const types = inputs.map(({ type }) => (type === "string" ? "bytes" : type));
      const data = concat([selector, AbiCoder.defaultAbiCoder().encode(types, values)]);
      await (await cast.stranger.sendTransaction({ to: manager, data })).wait();
    }
    const [log] = await manager.queryFilter(manager.filters.GroupAdded(accountId));
    expect(() => must(log).args.name, "what ethers itself makes of it").to.throw();
    const contractAddress = await manager.getAddress();
    const given = { AbiCoder, getBytes, AccountManager__factory, contractAddress, provider: ethers.provider };
    expect(await printed({ ...given, accountId, deploymentBlock: 0 })).to.deep.equal([[1n, "\ufffd\ufffda"]]);
    await restore();
  });
});
