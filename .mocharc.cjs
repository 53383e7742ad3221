// The service tests (contracts' own tests run inside Hardhat: `npm run test:contracts`).
module.exports = {
  require: ["./scripts/typescript.cjs"],
  extension: ["ts"],
  // Node 24 would first try to load each TypeScript file itself, as an ES module. Memory is collected as in the
  // keyholder: tests measure how long its loop is held.
  "node-option": ["no-experimental-strip-types", "max-semi-space-size=8", "single-threaded-gc"],
  timeout: 30_000,
  // A hook that fails may leave a process or a socket behind; the run has to end all the same.
  exit: true,
};
