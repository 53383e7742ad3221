/** Development settings never start in production: the refusals that concern the TEE. */
import { expect } from "chai";
import { ConfigError, readConfig } from "../../../executor/config";

const PRODUCTION = {
  NODE_ENV: "production",
  EXECUTOR_SOCKET: "/run/keywright/executor.sock",
  EXECUTOR_SOCKET_GROUP: "1500",
  RPC_URLS: "https://rpc.example,https://rpc.other.example",
  RPC_QUORUM: "2",
  CHAIN_ID: "1",
  CONTRACT_ADDRESS: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
  TEE: "dstack",
  DSTACK_ENDPOINT: "/var/run/dstack.sock",
};

function problemsOf(changes: Record<string, string | undefined>): string {
  try {
    readConfig({ ...PRODUCTION, ...changes });
    return "";
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.join("\n");
    throw error;
  }
}

describe("the executor in production", () => {
  it("starts with a real TEE over its socket", () => {
    expect(problemsOf({})).to.equal("");
  });

  const refusals: Record<string, [Record<string, string | undefined>, RegExp]> = {
    "simulated quotes": [{ TEE: "simulated" }, /production needs TEE=dstack \(it is simulated\)/],
    "no TEE": [{ TEE: "none", DSTACK_ENDPOINT: undefined }, /production needs TEE=dstack \(it is none\)/],
    "no word about the TEE": [{ TEE: undefined, DSTACK_ENDPOINT: undefined }, /production needs TEE=dstack/],
    "a TEE without its endpoint": [{ DSTACK_ENDPOINT: undefined }, /needs DSTACK_ENDPOINT/],
    "a guest agent over the network": [{ DSTACK_ENDPOINT: "http://10.0.0.1:8090" }, /Unix socket only/],
    "the development root key beside a TEE": [{ ROOT_KEY_FILE: "/data/root.key" }, /ROOT_KEY_FILE/],
    "the development root key instead of one": [
      { TEE: "none", DSTACK_ENDPOINT: undefined, ROOT_KEY_FILE: "/data/root.key" },
      /production refuses ROOT_KEY_FILE/,
    ],
    "an old head": [{ MAX_HEAD_AGE_SECONDS: "0" }, /MAX_HEAD_AGE_SECONDS/],
  };
  for (const [name, [changes, reason]] of Object.entries(refusals)) {
    it(`does not start with ${name}, and says what to change`, () => {
      expect(problemsOf(changes)).to.match(reason);
    });
  }

  it("removes the endpoint of the root key from the environment of its children", () => {
    const environment: Record<string, string | undefined> = { ...PRODUCTION };
    readConfig(environment);
    expect(environment).not.to.have.any.keys("DSTACK_ENDPOINT", "ROOT_KEY_FILE", "RPC_URLS");
  });
});
