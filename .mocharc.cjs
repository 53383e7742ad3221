// The service tests (contracts' own tests run inside Hardhat: `npm run test:contracts`).
module.exports = {
  require: ["./scripts/typescript.cjs"],
  extension: ["ts"],
  // Node 24 would first try to load each TypeScript file itself, as an ES module.
  "node-option": ["no-experimental-strip-types"],
  timeout: 30_000,
  // A hook that fails may leave a process or a socket behind; the run has to end all the same.
  exit: true,
};
