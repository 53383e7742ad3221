/**
 * Converts text and bytes for the guest with the host's decoders. Input is untrusted: nothing may throw out of this
 * file.
 */

type Converted = { output: string | ArrayBuffer } | { problem: "label" | "input" };

export function convert(...[kind, input, label, fatal, ignoreBOM]: unknown[]): Converted {
  try {
    if (kind === "encode" && typeof input === "string") return { output: arrayBufferOf(Buffer.from(input, "utf8")) };
    if (kind === "decode" && input instanceof ArrayBuffer)
      return decode(input, String(label), fatal === true, ignoreBOM === true);
    if (kind === "atob" && typeof input === "string") return { output: atob(input) };
    if (kind === "btoa" && typeof input === "string") return { output: btoa(input) };
  } catch {
    // Reported as invalid input below.
  }
  return { problem: "input" };
}

function decode(input: ArrayBuffer, label: string, fatal: boolean, ignoreBOM: boolean): Converted {
  let decoder: InstanceType<typeof TextDecoder>;
  try {
    decoder = new TextDecoder(label, { fatal, ignoreBOM });
  } catch {
    return { problem: "label" };
  }
  return { output: decoder.decode(input) };
}

const arrayBufferOf = (bytes: Buffer): ArrayBuffer => new Uint8Array(bytes).buffer;
