/** Encodes calls of views and decodes their results, by the ABI. */
import { MalformedAnswer, WORD_BYTES } from "../../../protocol/abi";
import { CONTRACT } from "./contract";
import { readAll, shapeOf, type Shape } from "./decoder";

export type ViewArgument = bigint | number | string;

/** Calldata of a view; views take only numbers, hashes and addresses. */
export function encodeView(name: string, args: readonly ViewArgument[]): string {
  return (
    viewOf(name).selector +
    args
      .map((value) =>
        BigInt(value)
          .toString(16)
          .padStart(2 * WORD_BYTES, "0"),
      )
      .join("")
  );
}

/**
 * The return values in order; a struct as an object of its members. @throws MalformedAnswer for data that this view
 * cannot have returned.
 */
export function decodeResult(name: string, data: unknown): readonly unknown[] {
  const { outputs } = viewOf(name);
  if (typeof data !== "string" || !data.startsWith("0x")) throw new MalformedAnswer();
  const bytes = Buffer.from(data.slice(2), "hex");
  // Invalid hex shortens the buffer.
  if (2 * bytes.length !== data.length - 2) throw new MalformedAnswer();
  return readAll(outputs, bytes, 0);
}

interface View {
  readonly selector: string;
  readonly outputs: readonly Shape[];
}

const views = new Map<string, View>();

function viewOf(name: string): View {
  const known = views.get(name);
  if (known !== undefined) return known;
  const fragment = CONTRACT.getFunction(name);
  if (fragment === null) throw new TypeError(`the contract has no function ${name}`);
  const view = { selector: fragment.selector, outputs: fragment.outputs.map(shapeOf) };
  views.set(name, view);
  return view;
}
