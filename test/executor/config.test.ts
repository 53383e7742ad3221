/**
 * The executor's configuration: a bad value stops the start and names what to fix; production refuses what is only for
 * development.
 */
import { expect } from "chai";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError, readConfig, readRootConfig } from "../../executor/config";
import { LIMIT_CEILINGS, LIMIT_NAMES, limitVariable } from "../../executor/limits";
import { RUN_LIMITS } from "../../protocol/limits";

const DEVELOPMENT = {
  EXECUTOR_SOCKET: "/run/keywright/executor.sock",
  RPC_URLS: "http://127.0.0.1:8545",
  CHAIN_ID: "31337",
  CONTRACT_ADDRESS: `0x${"c0".repeat(20)}`,
};
const PRODUCTION = {
  ...DEVELOPMENT,
  NODE_ENV: "production",
  CHAIN_ID: "8453",
  RPC_URLS: "https://one.example/key,https://two.example/key",
  RPC_QUORUM: "2",
  TEE: "dstack",
  DSTACK_ENDPOINT: "/var/run/dstack.sock",
  EXECUTOR_SOCKET_GROUP: "1500",
};
const problemsOf = (environment: Record<string, string>): string => {
  try {
    readConfig({ ...environment });
    return "none";
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.join("\n");
    throw error;
  }
};

describe("the executor's configuration", () => {
  it("needs few settings in development, and its own full set in production", () => {
    expect(problemsOf(DEVELOPMENT)).to.equal("none");
    expect(problemsOf(PRODUCTION)).to.equal("none");
  });

  it("needs neither chain nor contract before the contract exists, and then no less of the TEE", () => {
    const { EXECUTOR_SOCKET, NODE_ENV, TEE, DSTACK_ENDPOINT, EXECUTOR_SOCKET_GROUP } = PRODUCTION;
    const unbound = { CONTRACT_ADDRESS: "none", EXECUTOR_SOCKET };
    expect(readRootConfig({ ...DEVELOPMENT })).to.equal(undefined);
    expect(readRootConfig({ ...unbound })).to.include({ EXECUTOR_SOCKET, TEE: "none", production: false });
    const production = { ...unbound, NODE_ENV, TEE, DSTACK_ENDPOINT, EXECUTOR_SOCKET_GROUP };
    expect(readRootConfig({ ...production })).to.include({ production: true });
    expect(() => readRootConfig({ ...production, TEE: "simulated" })).to.throw(/production needs TEE=dstack/);
    expect(() => readRootConfig({ ...unbound, TEE: "dstack" })).to.throw(/needs DSTACK_ENDPOINT/);
    expect(() => readRootConfig({ CONTRACT_ADDRESS: "none" })).to.throw(/EXECUTOR_SOCKET is needed/);
  });

  const wrong: Record<string, [Record<string, string>, RegExp]> = {
    "a missing socket": [{ EXECUTOR_SOCKET: "" }, /EXECUTOR_SOCKET is needed/],
    "an RPC address without a chain": [{ ACTION_RPC_URLS: "https://rpc.example" }, /ACTION_RPC_URLS must be <chain>=/],
    "a chain named twice": [{ ACTION_RPC_URLS: "base=https://a.example base=https://b.example" }, /each chain once/],
    "a chain's address that is no URL": [{ ACTION_RPC_URLS: "base=rpc.example" }, /must be <chain>=<URL>/],
    "a relative socket path": [{ EXECUTOR_SOCKET: "executor.sock" }, /EXECUTOR_SOCKET must be an absolute path/],
    "a TCP address as socket": [
      { EXECUTOR_SOCKET: "tcp://127.0.0.1:7000" },
      /EXECUTOR_SOCKET must be an absolute path/,
    ],
    "a socket path too long for the kernel": [{ EXECUTOR_SOCKET: `/${"s".repeat(107)}` }, /at most 107 bytes/],
    "no RPC endpoint": [{ RPC_URLS: " , " }, /RPC_URLS must be http/],
    "an RPC endpoint that is no URL": [{ RPC_URLS: "localhost:8545" }, /RPC_URLS must be http/],
    "an RPC endpoint named twice": [{ RPC_URLS: "http://a.example,http://a.example" }, /names an endpoint twice/],
    "one written in two ways": [
      { RPC_QUORUM: "2", RPC_URLS: "http://a.example,http://A.example:80/" },
      /RPC_URLS names an endpoint twice/,
    ],
    "an endpoint of events written in two ways": [
      {
        ...{ RPC_QUORUM: "2", RPC_URLS: "http://127.0.0.1:1,http://127.0.0.1:2" },
        EVENT_RPC_URLS: "10=http://a.example,http://A.example/",
      },
      /EVENT_RPC_URLS needs RPC_QUORUM=2 different endpoints of chain 10/,
    ],
    "a quorum above the number of endpoints": [{ RPC_QUORUM: "2" }, /RPC_QUORUM is 2, but RPC_URLS names only 1/],
    "the fetcher among the children": [
      { FETCHER_UID: "61300" },
      /FETCHER_UID=61300 lies in the children's range: SANDBOX_FIRST_UID to 77583/,
    ],
    "the fetcher of key sets among the children": [
      { KEY_SET_FETCHER_UID: "61200" },
      /KEY_SET_FETCHER_UID=61200 lies in the children's range/,
    ],
    "the group of the socket among the children": [
      { EXECUTOR_SOCKET_GROUP: "61201" },
      /EXECUTOR_SOCKET_GROUP=61201 lies in the children's range/,
    ],
    "one user for two processes": [{ FETCHER_UID: "61198" }, /FETCHER_UID, KEY_SET_FETCHER_UID must differ/],
    "a chain of events with too few endpoints": [
      { RPC_QUORUM: "2", RPC_URLS: "http://127.0.0.1:1,http://127.0.0.1:2", EVENT_RPC_URLS: "10=http://127.0.0.1:3" },
      /EVENT_RPC_URLS needs RPC_QUORUM=2 different endpoints of chain 10/,
    ],
    "a chain of events without an id": [{ EVENT_RPC_URLS: "http://127.0.0.1:3" }, /EVENT_RPC_URLS must be <chain id>=/],
    "a quorum of zero": [{ RPC_QUORUM: "0" }, /RPC_QUORUM must be between 1 and 16/],
    "a contract that is no address": [{ CONTRACT_ADDRESS: "0x12" }, /CONTRACT_ADDRESS must be an address/],
    "a chain id in hex": [{ CHAIN_ID: "0x7a69" }, /CHAIN_ID must be a whole number/],
    "a deployment file that is not there": [
      { DEPLOYMENT_FILE: "/nowhere/base.json" },
      /DEPLOYMENT_FILE .* cannot be read/,
    ],
    "an unknown TEE": [{ TEE: "sgx" }, /TEE /],
    "a TEE without its endpoint": [{ TEE: "simulated" }, /needs DSTACK_ENDPOINT/],
    "a TEE and a root key file": [
      { TEE: "simulated", DSTACK_ENDPOINT: "/x", ROOT_KEY_FILE: "/y" },
      /unset ROOT_KEY_FILE/,
    ],
    "issuers that are not JSON": [{ IDENTITY_ISSUERS: "https://a" }, /IDENTITY_ISSUERS must be JSON/],
    "an issuer without audience": [
      { IDENTITY_ISSUERS: '[{"issuer":"https://a.example","jwksUrl":"https://a.example/j"}]' },
      /IDENTITY_ISSUERS 0.audience/,
    ],
    "a switch that is neither true nor false": [
      { ALLOW_PRIVATE_KEYS: "no" },
      /ALLOW_PRIVATE_KEYS must be true or false/,
    ],
    "a port out of range": [{ FETCH_PORTS: "80,70000" }, /FETCH_PORTS 1: must be between 1 and 65535/],
    "a service name with a space": [{ SERVICE_NAME: "Key wright" }, /SERVICE_NAME /],
  };
  for (const [name, [environment, message]] of Object.entries(wrong)) {
    it(`does not start with ${name}, and says so`, () =>
      expect(problemsOf({ ...DEVELOPMENT, ...environment })).to.match(message));
  }

  it("names every problem at once", () => {
    const problems = problemsOf({ ...DEVELOPMENT, EXECUTOR_SOCKET: "", TEE: "sgx", RUN_LIMIT_FETCHES: "many" });
    expect(problems.split("\n").length).to.equal(3);
  });

  it("accepts every limit up to its maximum and not one above", () => {
    for (const name of LIMIT_NAMES) {
      const variable = limitVariable(name);
      expect(readConfig({ ...DEVELOPMENT }).limits[name]).to.equal(RUN_LIMITS[name]);
      expect(readConfig({ ...DEVELOPMENT, [variable]: String(LIMIT_CEILINGS[name]) }).limits[name]).to.equal(
        LIMIT_CEILINGS[name],
      );
      expect(problemsOf({ ...DEVELOPMENT, [variable]: String(LIMIT_CEILINGS[name] + 1) })).to.contain(variable);
      expect(problemsOf({ ...DEVELOPMENT, [variable]: "0" })).to.contain(variable);
    }
  });

  it("reads chain and contract from a deployment file, and refuses variables that contradict it", () => {
    const folder = mkdtempSync(join(tmpdir(), "keywright-config-"));
    const file = join(folder, "base.json");
    writeFileSync(
      file,
      JSON.stringify({ network: "base", chainId: "8453", contractAddress: `0x${"ab".repeat(20)}`, blockNumber: 1 }),
    );
    const { CHAIN_ID: _id, CONTRACT_ADDRESS: _address, ...rest } = DEVELOPMENT;
    const config = readConfig({ ...rest, DEPLOYMENT_FILE: file });
    expect([config.chainId, config.contractAddress.toLowerCase()]).to.deep.equal([8453n, `0x${"ab".repeat(20)}`]);
    expect(problemsOf({ ...DEVELOPMENT, CHAIN_ID: "31337", DEPLOYMENT_FILE: file })).to.contain(
      "CHAIN_ID is 31337, but DEPLOYMENT_FILE says 8453",
    );
    expect(problemsOf({ ...DEVELOPMENT, DEPLOYMENT_FILE: file })).to.contain("CONTRACT_ADDRESS is");
    rmSync(folder, { recursive: true });
  });

  it("drains runs for five seconds in development and for a minute in production", () => {
    expect(readConfig({ ...DEVELOPMENT }).drainMs).to.equal(5_000);
    expect(readConfig({ ...PRODUCTION }).drainMs).to.equal(60_000);
    expect(readConfig({ ...DEVELOPMENT, DRAIN_SECONDS: "0" }).drainMs).to.equal(0);
  });

  it("checks the age of the head everywhere but on the development chain", () => {
    expect(readConfig({ ...DEVELOPMENT }).maxHeadAgeSeconds).to.equal(0);
    expect(readConfig({ ...DEVELOPMENT, CHAIN_ID: "8453" }).maxHeadAgeSeconds).to.equal(60);
    expect(readConfig({ ...PRODUCTION, CHAIN_ID: "31337" }).maxHeadAgeSeconds).to.equal(60);
  });

  const notInProduction: Record<string, [Record<string, string>, RegExp]> = {
    "no TEE": [{ TEE: "none" }, /needs TEE=dstack/],
    "a simulated TEE": [{ TEE: "simulated" }, /needs TEE=dstack/],
    "a root key file": [{ ROOT_KEY_FILE: "/root.key" }, /refuses ROOT_KEY_FILE/],
    "any age of the head": [{ MAX_HEAD_AGE_SECONDS: "0" }, /refuses MAX_HEAD_AGE_SECONDS=0/],
    "a socket without a group": [{ EXECUTOR_SOCKET_GROUP: "" }, /needs EXECUTOR_SOCKET_GROUP/],
    "guests that reach private hosts": [{ FETCH_ALLOW_HOSTS: "10.0.0.1" }, /refuses FETCH_ALLOW_HOSTS/],
    "webhooks at private hosts": [{ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" }, /refuses WEBHOOK_ALLOW_HOSTS/],
    "an RPC endpoint in clear text": [{ RPC_URLS: "https://one.example,http://two.example" }, /needs https/],
    "an issuer's keys in clear text": [
      { IDENTITY_ISSUERS: '[{"issuer":"https://a.example","jwksUrl":"http://a.example/j","audience":"x"}]' },
      /needs https for every jwksUrl/,
    ],
  };
  for (const [name, [environment, message]] of Object.entries(notInProduction)) {
    it(`refuses ${name} in production`, () => expect(problemsOf({ ...PRODUCTION, ...environment })).to.match(message));
  }

  it("removes endpoints and paths from the environment, so that no child inherits them", () => {
    const environment: Record<string, string | undefined> = { ...PRODUCTION };
    readConfig(environment);
    expect(Object.keys(environment)).to.not.include.members(["RPC_URLS"]);
    for (const name of ["RPC_URLS", "DSTACK_ENDPOINT", "EXECUTOR_SOCKET", "DATA_DIR", "ROOT_KEY_FILE", "KUBO_RPC_URL"])
      expect(environment[name]).to.equal(undefined);
  });
});
