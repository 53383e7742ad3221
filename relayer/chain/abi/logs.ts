/** Decodes logs as events of the contract, by its ABI. Event signatures are hashed once, not per log. */
import type { EventFragment, ParamType } from "ethers";
import { MalformedAnswer } from "../../../protocol/abi";
import { CONTRACT } from "./contract";
import { readAll, shapeOf, type Shape } from "./decoder";

export interface RawLog {
  readonly topics: readonly string[];
  readonly data: string;
}

export interface DecodedLog {
  readonly name: string;
  readonly inputs: readonly ParamType[];
  /** Keyed by input name; invalid UTF-8 decodes to replacement characters. */
  readonly args: Readonly<Record<string, unknown>>;
}

interface KnownEvent {
  readonly fragment: EventFragment;
  readonly indexed: readonly { readonly name: string; readonly shape: Shape }[];
  readonly names: readonly string[];
  readonly shapes: readonly Shape[];
}

let events: ReadonlyMap<string, KnownEvent> | undefined;

/** Topics of all events of the contract. */
export const eventTopics = (): readonly string[] => [...known().keys()];

/** Undefined for a log that is not an event of the contract, or does not match its ABI. */
export function decodeLog({ topics, data }: RawLog): DecodedLog | undefined {
  const event = known().get(topics[0] ?? "");
  if (event === undefined || topics.length !== event.indexed.length + 1) return undefined;
  try {
    const args: Record<string, unknown> = {};
    event.indexed.forEach(({ name, shape }, index) => (args[name] = shape.read(bytesOf(topics[index + 1] ?? ""), 0)));
    const values = readAll(event.shapes, bytesOf(data), 0);
    event.names.forEach((name, index) => (args[name] = values[index]));
    return { name: event.fragment.name, inputs: event.fragment.inputs, args };
  } catch (error) {
    if (error instanceof MalformedAnswer) return undefined;
    throw error;
  }
}

const bytesOf = (hex: string): Buffer => Buffer.from(hex.slice(2), "hex");

function known(): ReadonlyMap<string, KnownEvent> {
  if (events !== undefined) return events;
  const found = new Map<string, KnownEvent>();
  CONTRACT.forEachEvent((fragment) => {
    const inData = fragment.inputs.filter(({ indexed }) => indexed !== true);
    found.set(fragment.topicHash, {
      fragment,
      indexed: fragment.inputs
        .filter(({ indexed }) => indexed === true)
        .map((input) => ({ name: input.name, shape: shapeOf(input) })),
      names: inData.map(({ name }) => name),
      shapes: inData.map(shapeOf),
    });
  });
  return (events = found);
}
