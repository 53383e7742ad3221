import "@nomicfoundation/hardhat-toolbox";
import { setFlagsFromString } from "node:v8";
import { subtask, type HardhatUserConfig } from "hardhat/config";
import {
  TASK_COMPILE_SOLIDITY_EMIT_ARTIFACTS,
  TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD,
} from "hardhat/builtin-tasks/task-names";
import type { CompilerOutput } from "hardhat/types";
import { runTypeChain } from "typechain";
import solcPackage from "solc/package.json";
import solc from "solc";

// Hardhat's chain gives each answer with a trace that stays in memory until its object is collected. Where such memory
// has a limit of its own, as by default, Node then searches its whole heap several times a second.
setFlagsFromString("--external-memory-accounted-in-global-limit");

// The compiler comes from the npm package, so a build downloads nothing.
subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async ({ solcVersion }: { solcVersion: string }) => {
  if (solcVersion !== solcPackage.version)
    throw new Error(`The solc package is ${solcPackage.version}; the sources want ${solcVersion}.`);
  return {
    compilerPath: require.resolve("solc/soljson.js"),
    isSolcJs: true,
    version: solcVersion,
    longVersion: solc.version().replace(/\.Emscripten.*$/, ""),
  };
});

// The account contract answers part of its ABI through code of others, which the compiler does not see: its artifact
// gets the ABI of the whole address.
subtask(
  TASK_COMPILE_SOLIDITY_EMIT_ARTIFACTS,
  async ({ output, ...rest }: { output: CompilerOutput }, _hre, runSuper) => {
    const manager = output.contracts["contracts/AccountManager.sol"]?.AccountManager;
    const whole = output.contracts["contracts/interfaces/IAccountManager.sol"]?.IAccountManager;
    if (manager) {
      if (!whole)
        throw new Error(
          "AccountManager.sol was compiled without IAccountManager.sol, which says what its address answers.",
        );
      const known = new Set(manager.abi.map((item: unknown) => JSON.stringify(item)));
      manager.abi.push(...whole.abi.filter((item: unknown) => !known.has(JSON.stringify(item))));
    }
    return (await runSuper({ output, ...rest })) as unknown;
  },
);

// Types of what is called, and of nothing else: bases and parts of interfaces would be two thirds of the folder.
const TYPED = [
  "contracts/AccountManager.sol/AccountManager",
  "contracts/ApplicationAllowlist.sol/ApplicationAllowlist",
  "contracts/Budgets.sol/Budgets",
  "@openzeppelin/contracts/metatx/ERC2771Forwarder.sol/ERC2771Forwarder",
];
subtask("typechain:generate-types", async (_, { config }) => {
  const files = TYPED.map((name) => `${config.paths.artifacts}/${name}.json`);
  await runTypeChain({
    cwd: config.paths.root,
    filesToProcess: files,
    allFiles: files,
    outDir: config.typechain.outDir,
    target: config.typechain.target,
    prettier: { printWidth: 120 },
    flags: { alwaysGenerateOverloads: false, discriminateTypes: false, tsNocheck: false, environment: "hardhat" },
  });
});

/**
 * The networks whose chain ids the services know, for Hardhat's own tasks (verify, console). Contracts are put on them
 * by `npm run deploy`, which takes the endpoint and asks for the deployer's key; nothing secret is read here.
 * `RPC_<NAME>` names an endpoint, for example RPC_BASE_SEPOLIA.
 */
const CHAIN_IDS = {
  mainnet: 1,
  optimism: 10,
  polygon: 137,
  base: 8_453,
  arbitrum: 42_161,
  "base-sepolia": 84_532,
  "arbitrum-sepolia": 421_614,
  sepolia: 11_155_111,
};
const NETWORKS = Object.fromEntries(
  Object.entries(CHAIN_IDS).map(([name, chainId]) => [
    name,
    { chainId, url: process.env[`RPC_${name.toUpperCase().replaceAll("-", "_")}`] ?? "http://127.0.0.1:8545" },
  ]),
);

const config: HardhatUserConfig = {
  solidity: {
    version: solcPackage.version,
    settings: {
      viaIR: true,
      evmVersion: "prague",
      optimizer: { enabled: true, runs: 200 },
      outputSelection: { "*": { "*": ["storageLayout"] } },
    },
  },
  networks: { hardhat: { hardfork: "prague" }, ...NETWORKS },
  typechain: { outDir: "typechain-types", target: "ethers-v6" },
  paths: { tests: "test/contracts" },
  mocha: {
    timeout: process.env.KEYWRIGHT_DEEP ? 1_200_000 : 60_000,
    ...(process.env.KEYWRIGHT_FIGURES && { reporter: `${__dirname}/scripts/testReporter.cjs` }),
  },
};
export default config;
