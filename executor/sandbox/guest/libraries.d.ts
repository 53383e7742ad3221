// The parts we use of libraries that ship no types.
declare module "object-inspect" {
  export default function inspect(value: unknown, options?: { depth?: number; maxStringLength?: number; indent?: number }): string;
}
declare module "@ungap/structured-clone" {
  export default function clone(value: unknown): unknown;
}
declare module "base-64" {
  const base64: { encode(text: string): string; decode(text: string): string };
  export default base64;
}
declare module "@sinonjs/text-encoding" {
  export const TextEncoder: new () => { encode(text?: string): Uint8Array };
  export const TextDecoder: new (label?: string, options?: object) => { decode(bytes?: ArrayBuffer | ArrayBufferView, options?: object): string };
}
declare module "whatwg-url" {
  export const URL: new (url: string, base?: string) => object;
  export const URLSearchParams: new (init?: unknown) => object;
}
