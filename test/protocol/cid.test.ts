import { expect } from "chai";
import { cidOfCode, parseCid } from "../../protocol/cid";
import { cidByHand } from "../support/unixfs";
import vectors from "../vectors/cid.json";

describe("the CID of an action's code", () => {
  for (const { utf8, cid } of vectors) {
    it(`equals that of ipfs add for ${JSON.stringify(utf8.slice(0, 40))}`, async () => {
      expect(await cidOfCode(utf8)).to.equal(cid);
    });
  }

  it("is the same for text and for its UTF-8 bytes", async () => {
    expect(await cidOfCode("žluť 🐎")).to.equal(await cidOfCode(Buffer.from("žluť 🐎", "utf8")));
  });

  const CHUNK = 262_144;
  for (const bytes of [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 5, 174 * CHUNK, 174 * CHUNK + 1]) {
    it(`agrees with an independently built tree at ${bytes} bytes`, async () => {
      const content = Buffer.alloc(bytes, "keywright ");
      expect(await cidOfCode(content)).to.equal(cidByHand(content));
      let pauses = 0;
      expect(await cidOfCode(content, async () => void pauses++)).to.equal(cidByHand(content));
      expect(pauses, "after each chunk the loop is left to others").to.equal(Math.max(1, Math.ceil(bytes / CHUNK)));
    });
  }
});

describe("a CID in a request", () => {
  const v0 = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";

  it("is accepted as CIDv0", () => {
    expect(parseCid(v0)).to.equal(v0);
  });

  it("is converted to v0 when it is CIDv1 dag-pb sha2-256", () => {
    expect(parseCid("bafybeidzu2sjdxoxqe6imfp6cnvbu5xg7cjizn3nfgr3u27ibmpvvnyuwi")).to.match(
      /^Qm[1-9A-HJ-NP-Za-km-z]{44}$/,
    );
  });

  for (const [why, text] of [
    ["raw codec", "bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"],
    ["empty", ""],
    ["no CID at all", "hello"],
    ["a character cut off", v0.slice(0, -1)],
    ["a space behind it", `${v0} `],
    ["far too long", "Qm".padEnd(4000, "a")],
  ] as const) {
    it(`is refused: ${why}`, () => {
      expect(parseCid(text)).to.equal(undefined);
    });
  }
});
