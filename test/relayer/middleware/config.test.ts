/** An invalid environment stops the start with what to fix; production refuses development settings. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { MIB, RATE_LIMITS } from "../../../protocol/limits";
import { ConfigError, loadConfig } from "../../../relayer/config";

const CONTRACT = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
const GOOD = {
  NODE_ENV: "development",
  RPC_URLS: "http://127.0.0.1:8545",
  CHAIN_ID: "31337",
  CONTRACT_ADDRESS: CONTRACT,
  EXECUTOR_SOCKET: "/run/executor.sock",
};
const STRIPE = {
  STRIPE_SECRET_KEY: "sk_live_1",
  STRIPE_PUBLISHABLE_KEY: "pk_live_1",
  STRIPE_WEBHOOK_SECRET: "whsec_1",
};
const PRODUCTION = { ...GOOD, ...STRIPE, NODE_ENV: "production", DATABASE_URL: "postgres://db/keywright" };

function problems(env: Record<string, string | undefined>): string {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.join("\n");
    throw error;
  }
  return "";
}

describe("the relayer's configuration", () => {
  it("needs few settings in development, with permissive defaults", () => {
    const config = loadConfig(GOOD);
    expect(config).to.deep.include({
      production: false,
      chainId: 31_337n,
      contractAddress: CONTRACT,
      serviceName: "Keywright",
      host: "127.0.0.1",
      port: 8000,
    });
    expect(config.signup).to.deep.equal({ creditCents: 2_000, dailyCapCents: undefined });
    expect(config.rateLimits.mintsPerMinutePerAddress).to.equal(120);
  });

  it("shares no code where the operator disables it, or where one machine is all there is", () => {
    const sharedBytes = (environment: Record<string, string | undefined>): number =>
      loadConfig(environment).sharedCode.totalBytes;
    expect(sharedBytes({ ...PRODUCTION, SHARED_CODE_MIB: "0" })).to.equal(0);
    expect(sharedBytes(PRODUCTION)).to.equal(4_096 * MIB);
    expect(sharedBytes(GOOD)).to.equal(0);
    expect(sharedBytes({ ...GOOD, SHARED_CODE_MIB: "1024" })).to.equal(1_024 * MIB);
  });

  it("accepts production with every required setting", () => {
    const config = loadConfig(PRODUCTION);
    expect(config).to.include({ production: true, databaseUrl: "postgres://db/keywright" });
    expect(config.signup.creditCents).to.equal(0);
    expect(config.rateLimits).to.deep.equal(RATE_LIMITS.production);
  });

  it("uses the operator's rate limits where they are given", () => {
    const { rateLimits } = loadConfig({ ...PRODUCTION, RATE_LIMIT_FREE_WRITES_PER_DAY: "7" });
    expect(rateLimits).to.deep.equal({ ...RATE_LIMITS.production, freeWritesPerDay: 7 });
  });

  it("uses the operator's timings of the chain, and the network's where none are given", () => {
    expect(loadConfig(GOOD).chainTuning).to.deep.equal({});
    const given = {
      FINALITY_DEPTH: "12",
      STUCK_AFTER_SECONDS: "20",
      MAX_FEE_PER_GAS_WEI: "7",
      TOP_UP_BELOW_WEI: "8",
      TOP_UP_TO_WEI: "9",
      MAX_TOP_UP_WEI: "10",
    };
    expect(loadConfig({ ...GOOD, ...given }).chainTuning).to.deep.equal({
      finalityDepth: 12,
      stuckAfterMs: 20_000,
      maxFeeCapWei: 7n,
      topUpBelowWei: 8n,
      topUpToWei: 9n,
      maxTopUpWei: 10n,
    });
  });

  it("is production by default", () => expect(problems({ ...GOOD, NODE_ENV: undefined })).to.include("DATABASE_URL"));

  const wrong: [string, Record<string, string | undefined>, string][] = [
    ["no RPC endpoint", { ...GOOD, RPC_URLS: undefined }, "RPC_URLS"],
    ["an RPC endpoint that is no URL", { ...GOOD, RPC_URLS: "localhost:8545" }, "RPC_URLS"],
    ["no contract", { ...GOOD, CONTRACT_ADDRESS: undefined }, "CONTRACT_ADDRESS"],
    ["half an address", { ...GOOD, CONTRACT_ADDRESS: "0x1234" }, "CONTRACT_ADDRESS"],
    ["no chain", { ...GOOD, CHAIN_ID: undefined }, "CHAIN_ID"],
    ["a fee cap that is no number of wei", { ...GOOD, MAX_FEE_PER_GAS_WEI: "0.5" }, "MAX_FEE_PER_GAS_WEI"],
    ["less room for code than one account needs", { ...GOOD, SHARED_CODE_MIB: "64" }, "SHARED_CODE_MIB"],
    ["a port too high", { ...GOOD, PORT: "70000" }, "PORT"],
    ["a port in words", { ...GOOD, PORT: "http" }, "PORT"],
    ["a name with a blank", { ...GOOD, SERVICE_NAME: "Key wright" }, "SERVICE_NAME"],
    ["some of the payment keys", { ...GOOD, STRIPE_SECRET_KEY: "sk_test_1" }, "STRIPE_WEBHOOK_SECRET"],
    ["an unknown mode", { ...GOOD, NODE_ENV: "staging" }, "NODE_ENV"],
    ["production on the embedded database", { ...PRODUCTION, DATABASE_URL: undefined }, "DATABASE_URL"],
    [
      "production with unbounded signup credit",
      { ...PRODUCTION, SIGNUP_CREDIT_CENTS: "100" },
      "SIGNUP_DAILY_CAP_CENTS",
    ],
    [
      "production with a payment double",
      { ...PRODUCTION, STRIPE_API_BASE: "http://127.0.0.1:12111" },
      "STRIPE_API_BASE",
    ],
    ["a deployment file that is not there", { ...GOOD, DEPLOYMENT_FILE: "/nowhere.json" }, "DEPLOYMENT_FILE"],
  ];
  for (const [what, env, variable] of wrong)
    it(`with ${what} names ${variable}`, () =>
      expect(problems(env)).to.match(new RegExp(`^[A-Z_, ]*${variable}[.: ]`, "m")));

  it("names every problem at once", () => {
    const all = problems({ NODE_ENV: "development", PORT: "x" });
    for (const variable of ["PORT", "RPC_URLS", "EXECUTOR_SOCKET"]) expect(all).to.include(variable);
  });

  it("reads chain and contract from a deployment file, and refuses contradicting variables", () => {
    const folder = mkdtempSync(join(tmpdir(), "deployment-"));
    const file = join(folder, "local.json");
    writeFileSync(
      file,
      JSON.stringify({ network: "local", chainId: "31337", contractAddress: CONTRACT, blockNumber: 7 }),
    );
    try {
      const { CHAIN_ID: _, CONTRACT_ADDRESS: __, ...rest } = GOOD;
      expect(loadConfig({ ...rest, DEPLOYMENT_FILE: file })).to.deep.include({
        chainId: 31_337n,
        contractAddress: CONTRACT,
        contractBlock: 7,
      });
      expect(problems({ ...GOOD, DEPLOYMENT_FILE: file, CHAIN_ID: "1" })).to.include(
        "CHAIN_ID is 1, but DEPLOYMENT_FILE says 31337",
      );
      expect(problems({ ...GOOD, DEPLOYMENT_FILE: file, CONTRACT_ADDRESS: `0x${"11".repeat(20)}` })).to.include(
        "CONTRACT_ADDRESS is",
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
