/** What a call's body may be: a caller cannot end the keyholder by it. */
import { expect } from "chai";
import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { readParts } from "../../executor/requests";
import { refusal } from "../support/refusal";

describe("the body of a call to the keyholder", () => {
  it("is a run's parts in order, wherever it is split and whatever is missing", async () => {
    const parts = [{ credential: { type: "key", key: "k" }, params: "{}" }, { a: "\n" }, { b: 2 }];
    const whole = Buffer.from(parts.map((part) => JSON.stringify(part)).join("\n"));
    for (let at = 0; at <= whole.length; at++) {
      const body = new PassThrough();
      const { first, rest } = readParts(body as unknown as IncomingMessage, "run");
      body.write(whole.subarray(0, at));
      await new Promise(setImmediate);
      body.end(whole.subarray(at));
      expect([await first, await rest(), await rest()]).to.deep.equal(parts);
      expect((await refusal(rest())).code).to.equal("malformed_json");
    }
  });

  it("has a run's last part at its line's end: the body's may come later, and nothing between counts", async () => {
    const body = new PassThrough();
    const { first, rest } = readParts(body as unknown as IncomingMessage, "run");
    body.write('{"credential":{"type":"key","key":"k"},"params":"{}"}\n{"notBefore":1}\n{"limitMs":2}\n and more');
    await first;
    expect([await rest(), await rest()]).to.deep.equal([{ notBefore: 1 }, { limitMs: 2 }]);
    body.end(" of it");
  });

  it("is refused once where its last piece makes it too large, and nothing of it is parsed", async () => {
    const body = new PassThrough({ highWaterMark: 16 * 2 ** 20 });
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    const others = process.rawListeners("unhandledRejection") as NodeJS.UnhandledRejectionListener[];
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", note);
    try {
      const { first, rest } = readParts(body as unknown as IncomingMessage, "payers");
      const refused = Promise.all([refusal(first), refusal(rest())]);
      body.write("no JSON");
      body.end(Buffer.alloc(4 * 2 ** 20, " "));
      expect((await refused).map(({ code }) => code)).to.deep.equal(["payload_too_large", "payload_too_large"]);
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(unhandled).to.deep.equal([]);
    } finally {
      process.removeAllListeners("unhandledRejection");
      for (const listener of others) process.on("unhandledRejection", listener);
    }
  });
});
