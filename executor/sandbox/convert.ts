/**
 * Converts text and bytes for the guest with the host's decoders. Input is untrusted: nothing may throw out of this
 * file.
 */

type Converted = { output: string | ArrayBuffer } | { problem: "label" | "input" };

export function convert(...[kind, input, label, fatal, ignoreBOM]: unknown[]): Converted {
  try {
    if (kind === "encode" && typeof input === "string") return { output: arrayBufferOf(Buffer.from(input, "utf8")) };
    if (kind === "decode" && input instanceof ArrayBuffer)
      return decoderOf(String(label), { fatal: fatal === true, ignoreBOM: ignoreBOM === true }, (decoder) =>
        decoder.decode(input),
      );
    if (kind === "encoding") return decoderOf(String(label), {}, ({ encoding }) => encoding);
    if (kind === "atob" && typeof input === "string") return { output: atob(input) };
    if (kind === "btoa" && typeof input === "string") return { output: btoa(input) };
  } catch {
    // Reported as invalid input below.
  }
  return { problem: "input" };
}

function decoderOf(
  label: string,
  options: ConstructorParameters<typeof TextDecoder>[1],
  use: (decoder: InstanceType<typeof TextDecoder>) => string,
): Converted {
  let decoder: InstanceType<typeof TextDecoder>;
  try {
    decoder = new TextDecoder(label, options);
  } catch {
    return { problem: "label" };
  }
  return { output: use(decoder) };
}

const arrayBufferOf = (bytes: Buffer): ArrayBuffer => new Uint8Array(bytes).buffer;
