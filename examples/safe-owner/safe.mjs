// `make` a Safe owned by a person and the PKP, or `pay` from it with the signatures of both.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Contract, ContractFactory, JsonRpcProvider, Wallet, ZeroAddress, concat, parseEther } from "ethers";
import { createClient } from "keywright";

const artifact = (path) =>
  createRequire(import.meta.url)(`@safe-global/safe-smart-account/build/artifacts/contracts/${path}.json`);
const { KEYWRIGHT_URL, KEYWRIGHT_API_KEY, RPC_URL, PKP } = process.env;
const provider = new JsonRpcProvider(RPC_URL, undefined, { cacheTimeout: -1 });
const [, , command, ...args] = process.argv;

/** The person among the owners, who also pays for gas. */
function person() {
  if (!existsSync("person.key")) writeFileSync("person.key", Wallet.createRandom().privateKey, { mode: 0o600 });
  return new Wallet(readFileSync("person.key", "utf8"), provider);
}

async function make() {
  const deployer = person();
  await provider.send("anvil_setBalance", [deployer.address, "0x8ac7230489e80000"]);
  const deploy = async ({ abi, bytecode }) =>
    (await new ContractFactory(abi, bytecode, deployer).deploy()).waitForDeployment();
  const singleton = await deploy(artifact("Safe.sol/Safe"));
  const factory = await deploy(artifact("proxies/SafeProxyFactory.sol/SafeProxyFactory"));
  const owners = [deployer.address, PKP];
  const setup = singleton.interface.encodeFunctionData("setup", [
    owners,
    2,
    ZeroAddress,
    "0x",
    ZeroAddress,
    ZeroAddress,
    0,
    ZeroAddress,
  ]);
  const address = await factory.createProxyWithNonce.staticCall(await singleton.getAddress(), setup, 0);
  await (await factory.createProxyWithNonce(await singleton.getAddress(), setup, 0)).wait();
  return address;
}

/** The PKP's signature over the Safe's transaction, or why there is none. */
async function coSigned(params) {
  const client = createClient({ baseUrl: KEYWRIGHT_URL, apiKey: KEYWRIGHT_API_KEY });
  const { response, error } = await client.runAction({
    code: readFileSync("co-sign.js", "utf8"),
    js_params: { pkpId: PKP, ...params },
  });
  if (error !== undefined) throw new Error(error.message);
  return response;
}

async function pay(address, to, coin) {
  const owner = person();
  const safe = new Contract(address, artifact("Safe.sol/Safe").abi, owner);
  const [value, nonce, { chainId }] = [parseEther(coin), await safe.nonce(), await provider.getNetwork()];
  const rest = [value, "0x", 0, 0, 0, 0, ZeroAddress, ZeroAddress];
  const hash = await safe.getTransactionHash(to, ...rest, nonce);
  const signatures = [
    [owner.address, owner.signingKey.sign(hash).serialized],
    [PKP, await coSigned({ chainId: String(chainId), safe: address, to, value: String(value), nonce: String(nonce) })],
  ];
  // A Safe wants signatures in the order of their owners' addresses.
  signatures.sort(([one], [other]) => (BigInt(one) < BigInt(other) ? -1 : 1));
  const sent = await safe.execTransaction(to, ...rest, concat(signatures.map(([, signature]) => signature)));
  await sent.wait();
  return sent.hash;
}

if (command === "make") console.log(await make());
else {
  const [, , coin] = args;
  console.log(
    await pay(...args).then(
      (hash) => `${coin} paid: ${hash}`,
      (error) => `${coin} refused: ${error.message}`,
    ),
  );
}
provider.destroy();
