// Types for the used parts of libraries without their own.
declare module "object-inspect" {
  export default function inspect(
    value: unknown,
    options?: { depth?: number; maxStringLength?: number; indent?: number },
  ): string;
}
declare module "@ungap/structured-clone" {
  export default function clone(value: unknown): unknown;
}
declare module "whatwg-url" {
  export const URL: new (url: string, base?: string) => object;
  export const URLSearchParams: new (init?: unknown) => object;
}
