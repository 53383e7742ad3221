/** A block's bloom filter: never wrong about an absence, and without an answer where it is missing or too full. */
import { expect } from "chai";
import { randomBytes } from "ethers";
import { BloomQuestion, unionOf } from "../../../../relayer/chain/events/bloom";
import { bloomOf } from "../../../support/bloom";

const random = (length: number): string => `0x${Buffer.from(randomBytes(length)).toString("hex")}`;

describe("blooms of blocks", () => {
  const address = random(20);
  const topics = [random(32), random(32)];
  const question = new BloomQuestion(address, topics);

  it("answer yes for a log of the contract, whatever else is in the block", () => {
    for (let more = 0; more < 40; more++) {
      const others = Array.from({ length: more }, () => random(32));
      expect(question.ask(bloomOf([address, topics[more % 2] as string, ...others]))).to.equal("yes");
    }
  });

  it("answer no without the address, or without any of the topics", () => {
    expect(question.ask(bloomOf([]))).to.equal("no");
    expect(question.ask(bloomOf(topics))).to.equal("no");
    expect(question.ask(bloomOf([address, random(32)]))).to.equal("no");
  });

  it("have no answer where they are missing, of another size, or more than half full", () => {
    for (const bloom of [undefined, "0x", "0x1234"]) expect(question.ask(bloom)).to.equal("unknown");
    expect(question.ask(`0x${"ff".repeat(256)}`)).to.equal("unknown");
  });

  it("of several blocks contain what each of them contains", () => {
    const union = unionOf([bloomOf([address]), bloomOf([random(32)]), bloomOf([topics[0] as string])]);
    expect(question.ask(union)).to.equal("yes");
    expect(question.ask(unionOf([bloomOf([address]), bloomOf([random(20)])]))).to.equal("no");
  });
});
