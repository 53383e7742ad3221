// docs/events.md shows every event as the contract emits it, decoded.
import { takeSnapshot } from "@nomicfoundation/hardhat-network-helpers";
import { expect } from "chai";
import { readFileSync, writeFileSync } from "node:fs";
import prettier from "prettier";
import { everyEvent, eventsPage } from "./support/eventsDoc";

const PAGE = "docs/events.md";

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
});
