/** The native library without the package's JavaScript fallback. */
declare module "secp256k1/bindings" {
  export * from "secp256k1";
}
