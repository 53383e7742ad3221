/** The native library alone, without the package's fall-back. */
declare module "secp256k1/bindings" {
  export * from "secp256k1";
}
