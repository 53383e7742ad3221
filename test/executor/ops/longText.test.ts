/** An op's arguments are checked on the event loop that all runs share: no text takes longer than reading it. */
import { expect } from "chai";
import { OP_ARGUMENTS } from "../../../executor/ops/arguments";
import { expectInTime, itInTime } from "../../support/inTime";
import { withLongText } from "../../support/longText";

describe("an op with a long text in its arguments", function () {
  this.timeout(60_000);

  for (const [name, schema] of Object.entries(OP_ARGUMENTS))
    itInTime(`holds up no other where it is ${name}`, async () => {
      let tried = 0;
      for (const value of withLongText(schema)) {
        const before = process.cpuUsage();
        schema.safeParse(value);
        const { user } = process.cpuUsage(before);
        expectInTime(user / 1_000, 100, JSON.stringify(value).slice(0, 200));
        tried++;
      }
      expect(tried > 0).to.equal(name !== "getActionPrivateKey");
    });
});
