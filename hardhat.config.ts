import "@nomicfoundation/hardhat-toolbox";
import { subtask, type HardhatUserConfig } from "hardhat/config";
import { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } from "hardhat/builtin-tasks/task-names";
import solcPackage from "solc/package.json";
import solc from "solc";

// The compiler comes from the npm package, so a build downloads nothing.
subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async ({ solcVersion }: { solcVersion: string }) => {
  if (solcVersion !== solcPackage.version) throw new Error(`The solc package is ${solcPackage.version}; the sources want ${solcVersion}.`);
  return {
    compilerPath: require.resolve("solc/soljson.js"),
    isSolcJs: true,
    version: solcVersion,
    longVersion: solc.version().replace(/\.Emscripten.*$/, ""),
  };
});

const config: HardhatUserConfig = {
  solidity: {
    version: solcPackage.version,
    settings: { viaIR: true, evmVersion: "prague", optimizer: { enabled: true, runs: 200 } },
  },
  networks: { hardhat: { hardfork: "prague" } },
  typechain: { outDir: "typechain-types", target: "ethers-v6" },
  paths: { tests: "test/contracts" },
  mocha: process.env.KEYWRIGHT_FIGURES ? { timeout: 1_200_000, reporter: `${__dirname}/scripts/figuresReporter.cjs` } : { timeout: 60_000 },
};
export default config;
