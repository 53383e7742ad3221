import { artifacts } from "hardhat";
import { must } from "../../support/must";

const [PUSH1, PUSH32] = [0x60, 0x7f];

interface Layout {
  storage: { label: string; slot: string; offset: number; type: string }[];
  types: Record<
    string,
    { members?: Layout["storage"]; key?: string; value?: string; base?: string; numberOfBytes: string }
  >;
}
interface Compiled {
  evm: {
    deployedBytecode: { object: string; immutableReferences: Record<string, { start: number; length: number }[]> };
    methodIdentifiers: Record<string, string>;
  };
  storageLayout: Layout;
}

/** The contracts whose code runs on the storage of one address. */
export const PARTS = ["AccountManager", "ApiPayers", "AccountLists"] as const;

/** The compiler's output for `contracts/<name>.sol`. */
export async function compiled(name: string, file = `contracts/${name}.sol`): Promise<Compiled> {
  const { output } = must(await artifacts.getBuildInfo(`${file}:${name}`));
  return must(output.contracts[file]?.[name]) as unknown as Compiled;
}

/** How often each instruction occurs in run-time code, without the data of pushes and the metadata. */
export function instructions(code: Uint8Array): Map<number, number> {
  const counts = new Map<number, number>();
  const metadata = 2 + (must(code[code.length - 2]) << 8) + must(code[code.length - 1]);
  for (let i = 0; i < code.length - metadata; i++) {
    const op = must(code[i]);
    counts.set(op, (counts.get(op) ?? 0) + 1);
    if (op >= PUSH1 && op <= PUSH32) i += op - PUSH1 + 1;
  }
  return counts;
}

/** Run-time code with its immutable values set to zero. */
export function withoutImmutables(code: string, { evm }: Compiled): string {
  const bytes = Buffer.from(code.replace(/^0x/, ""), "hex");
  for (const places of Object.values(evm.deployedBytecode.immutableReferences)) {
    for (const { start, length } of places) bytes.fill(0, start, start + length);
  }
  return bytes.toString("hex");
}

/**
 * Every slot of a layout with its whole type, as text, without the compiler's node numbers, which differ between runs.
 */
export function layoutOf({ storageLayout: { storage, types } }: Compiled): string {
  const shapeOf = (type: string): unknown => {
    const { members, key, value, base, numberOfBytes } = must(types[type]);
    return {
      type: type.replace(/\)\d+/g, ")"),
      numberOfBytes,
      members: members?.map(entry),
      parts: [key, value, base].filter((part) => part !== undefined).map(shapeOf),
    };
  };
  const entry = ({ label, slot, offset, type }: Layout["storage"][number]): unknown => ({
    label,
    slot,
    offset,
    shape: shapeOf(type),
  });
  return JSON.stringify(storage.map(entry), undefined, 1);
}
