/** Logs as events: every event of the contract as the general coder decodes it, and nothing else. */
import { AbiCoder, type EventFragment, type ParamType } from "ethers";
import { expect } from "chai";
import { CONTRACT } from "../../../../relayer/chain/abi/contract";
import { decodeLog, eventTopics } from "../../../../relayer/chain/abi/logs";

const coder = AbiCoder.defaultAbiCoder();

function sampleOf(type: ParamType): unknown {
  if (type.baseType === "array")
    return [sampleOf(type.arrayChildren as ParamType), sampleOf(type.arrayChildren as ParamType)];
  if (type.components !== null) return type.components.map(sampleOf);
  return (
    { bool: true, string: "a name ✓", bytes: "0xabcdef", address: "0x5FbDB2315678afecb367f032d93F642f64180aa3" }[
      type.baseType
    ] ?? 42n
  );
}

const events: EventFragment[] = [];
CONTRACT.forEachEvent((event) => void events.push(event));

function logOf(event: EventFragment): { topics: string[]; data: string } {
  const indexed = event.inputs.filter((input) => input.indexed === true);
  const others = event.inputs.filter((input) => input.indexed !== true);
  return {
    topics: [event.topicHash, ...indexed.map((input) => coder.encode([input], [sampleOf(input)]))],
    data: coder.encode(others, others.map(sampleOf)),
  };
}

describe("logs of the contract", () => {
  it("are found by the topics of all its events", () => {
    expect(eventTopics()).to.have.members(events.map(({ topicHash }) => topicHash));
  });

  for (const event of events) {
    it(`are decoded as ${event.name}, and refused when they are too short for it`, () => {
      const log = logOf(event);
      const decoded = decodeLog(log);
      const parsed = CONTRACT.parseLog(log);
      expect(decoded?.name).to.equal(event.name);
      for (const [index, { name }] of event.inputs.entries()) {
        const wanted: unknown = parsed?.args[index];
        expect(decoded?.args[name], name).to.deep.equal(
          typeof wanted === "object" ? [...(wanted as Iterable<unknown>)] : wanted,
        );
      }
      expect(decodeLog({ ...log, topics: log.topics.slice(0, -1) })).to.equal(undefined);
      if (log.data.length > 2) expect(decodeLog({ ...log, data: log.data.slice(0, -64) })).to.equal(undefined);
    });
  }

  it("are ignored where another contract emitted them", () => {
    expect(decodeLog({ topics: [`0x${"12".repeat(32)}`], data: "0x" })).to.equal(undefined);
    expect(decodeLog({ topics: [], data: "0x" })).to.equal(undefined);
  });
});
