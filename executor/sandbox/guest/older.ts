/**
 * Functions of older systems that have a counterpart: their arguments become those of an op, their results have the old
 * shapes. Where many nodes signed and a client combined, here one signature is made; the run's answer lists it by name.
 */
export type Fields = Record<string, unknown>;
export type Ops = Readonly<Record<"signDigest" | "signMessage", (args: Fields) => Promise<unknown>>>;

/** Hex without 0x, as older clients read it. */
export interface OldSignature {
  r: string;
  s: string;
  recid: number;
  signature: string;
  publicKey: string;
  /** The hash that was signed, where the caller gave it. */
  dataSigned?: string;
}

export type NamedFunctions = readonly (readonly [name: string, call: (...args: never[]) => unknown])[];

export function olderFunctions(ops: Ops, keep: (name: string, signature: OldSignature) => void): NamedFunctions {
  const { stringify } = JSON;

  async function signDigest(name: string, args: unknown): Promise<OldSignature> {
    const { toSign, publicKey, sigName } = fieldsOf(name, args, ["toSign", "publicKey", "sigName"]);
    const digest = hexOf(toSign);
    if (digest.length !== 64) throw new TypeError(`Actions.${name}: toSign must be the 32 bytes of a hash`);
    const key = keyOf(name, publicKey);
    return kept(sigName, key, await ops.signDigest({ pkpId: `0x${key}`, digest: `0x${digest}` }), digest);
  }

  function kept(sigName: unknown, publicKey: string, signed: unknown, dataSigned?: string): OldSignature {
    const signature = String(signed);
    const [r, s] = [signature.slice(2, 66), signature.slice(66, 130)];
    const recid = Number.parseInt(signature.slice(130), 16) - 27;
    const made = { r, s, recid, signature, publicKey, ...(dataSigned !== undefined && { dataSigned }) };
    keep(String(sigName), made);
    return made;
  }

  return [
    [
      "signEcdsa",
      async (args: unknown) => {
        await signDigest("signEcdsa", args);
        return "success";
      },
    ],
    [
      "sign",
      async (args: unknown) => {
        const { signingScheme } = fieldsOf("sign", args, ["toSign", "publicKey", "sigName", "signingScheme"]);
        if (signingScheme !== "EcdsaK256Sha256") throw new TypeError(OTHER_SCHEMES);
        await signDigest("sign", args);
        return "success";
      },
    ],
    [
      "signAndCombineEcdsa",
      async (args: unknown) => {
        const { r, s, recid: v } = await signDigest("signAndCombineEcdsa", args);
        // The compressed point, whose x coordinate is r.
        return stringify({ r: `${v === 0 ? "02" : "03"}${r}`, s, v });
      },
    ],
    [
      "ethPersonalSignMessageEcdsa",
      async (args: unknown) => {
        const name = "ethPersonalSignMessageEcdsa";
        const { message, publicKey, sigName } = fieldsOf(name, args, ["message", "publicKey", "sigName"]);
        const key = keyOf(name, publicKey);
        kept(sigName, key, await ops.signMessage({ pkpId: `0x${key}`, message }));
        return "success";
      },
    ],
    // An action runs once, in one place.
    ["runOnce", async (_: unknown, once: () => unknown) => once()],
    ["uint8arrayToString", (bytes: Uint8Array, encoding?: string) => textOf(bytes, encoding)],
    ["uint8arrayFromString", (text: string, encoding?: string) => bytesOf(text, encoding)],
    ["broadcastAndCollect", async (args: unknown) => [fieldsOf("broadcastAndCollect", args, ["value"]).value]],
  ];
}

export function fieldsOf(name: string, args: unknown, fields: readonly string[]): Fields {
  const given = (typeof args === "object" && args !== null ? args : {}) as Fields;
  for (const field of fields)
    if (given[field] === undefined)
      throw new TypeError(`Actions.${name}({ ${fields.join(", ")} }): ${field} is missing`);
  return given;
}

const OTHER_SCHEMES =
  "Actions.sign signs with EcdsaK256Sha256. For other schemes use Actions.signEd25519, signSchnorr or signP256.";

const UTF8 = /^utf-?8$/;
const HEX = /^(hex|base16)$/;
/** As the library `uint8arrays` names them: base64 has no padding, base64pad has. */
const BASE64 = /^base64(url)?(pad)?$/;

function unknownEncoding(name: string): never {
  throw new RangeError(
    `the encoding ${name} is unknown here: use utf8, hex, base64, base64pad, base64url, base64urlpad`,
  );
}

function textOf(bytes: Uint8Array, name = "utf8"): string {
  if (UTF8.test(name)) return new TextDecoder().decode(bytes);
  if (HEX.test(name)) return hexOf(bytes);
  const [, url, pad] = BASE64.exec(name) ?? unknownEncoding(name);
  const padded = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  const text = url === undefined ? padded : padded.replace(/\+/g, "-").replace(/\//g, "_");
  return pad === undefined ? text.replace(/=+$/, "") : text;
}

function bytesOf(text: string, name = "utf8"): Uint8Array {
  if (UTF8.test(name)) return new TextEncoder().encode(text);
  if (BASE64.test(name))
    return Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  if (!HEX.test(name)) unknownEncoding(name);
  if (!/^([0-9a-fA-F]{2})*$/.test(text)) throw new TypeError("the text is not hex");
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}

/** Hex of bytes, of a list of bytes, or of hex. */
function hexOf(value: unknown): string {
  if (typeof value === "string" && /^(0x)?[0-9a-fA-F]*$/.test(value)) return value.replace(/^0x/, "").toLowerCase();
  if (value instanceof Uint8Array || Array.isArray(value))
    return Array.from(value as ArrayLike<number>, (byte) => Number(byte).toString(16).padStart(2, "0")).join("");
  return "";
}

/** The keyholder takes a PKP's public key for its address. */
function keyOf(name: string, publicKey: unknown): string {
  const key = hexOf(publicKey);
  if (key === "") throw new TypeError(`Actions.${name}: publicKey must be hex, the PKP's public key or its address`);
  return key;
}
