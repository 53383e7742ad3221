import { expect } from "chai";
import { free } from "../../protocol/free";
import { MIB } from "../../protocol/limits";

describe("bytes that are given back", () => {
  it("leave the memory at once, without a collection, and are empty", () => {
    const bytes = Buffer.alloc(64 * MIB);
    const before = process.memoryUsage().arrayBuffers;
    free(bytes);
    expect(before - process.memoryUsage().arrayBuffers).to.be.at.least(60 * MIB);
    expect(bytes.length).to.equal(0);
  });

  it("are never those of others: a part of a larger buffer stays", () => {
    const whole = Buffer.alloc(8, "a");
    free(whole.subarray(1));
    free(Buffer.from("pooled"));
    expect(whole.toString()).to.equal("aaaaaaaa");
  });

  it("may be none, or freed already", () => {
    const twice = Buffer.alloc(64 * 1_024);
    free(twice);
    free(twice);
    free(Buffer.alloc(0));
    free(new Uint8Array(new SharedArrayBuffer(8)));
  });
});
