/** Whether the root of all keys is the one that the contract is bound to since its deployment. */
import { ed25519 } from "@noble/curves/ed25519";
import { Interface } from "ethers";
import { rootCommitmentOf, rootStatement, rootStatementSchema } from "../../protocol/rootKey";
import { Unavailable, type Material } from "./material";
import { ethCall, type Endpoints } from "./rpc";
import { Malformed } from "./types";

const CONTRACT = new Interface(["function rootCommitment() view returns (bytes32)"]);

/** First the document alone: the root's key has the commitment and signed the statement key. Then the contract. */
export async function checkRoot(material: Material, endpoints: Endpoints | undefined): Promise<string> {
  const { config, root_commitment: stated } = material.info();
  const commitment = statedRoot(config);
  if (stated !== undefined && stated !== commitment)
    throw new Malformed("root_commitment of /info is not the attested one");
  const own = `the root with the commitment ${commitment} vouches for the statement key`;
  if (endpoints === undefined)
    throw new Unavailable(`${own}; no RPC endpoint given to ask the contract which root it is bound to (--rpc)`);
  const { contract_address: to, chain_id: chainId } = material.chainConfig();
  const data = CONTRACT.encodeFunctionData("rootCommitment");
  const answer = await ethCall(endpoints, { chain: "the contract's chain", chainId, to, data });
  if (answer.toLowerCase() !== commitment)
    throw new Malformed(
      `the contract at ${to} is bound to ${/^0x[0-9a-f]{64}$/i.test(answer) ? `the root ${answer}` : "no root"}, but ` +
        `this service's keys derive from ${commitment}`,
    );
  return `${own}, and the contract is bound to it since its deployment`;
}

/** @throws Malformed unless the document's root vouches for its statement key under its namespace. */
function statedRoot(config: Readonly<Record<string, unknown>>): string {
  const { root, statement_key: statementKey, key_namespace: namespace } = config;
  const parsed = rootStatementSchema.safeParse(root);
  if (!parsed.success) throw new Malformed("the config document names no root key");
  const { commitment, public_key: publicKey, signature } = parsed.data;
  if (rootCommitmentOf(publicKey) !== commitment)
    throw new Malformed("the commitment of the config document is not that of its root key");
  const message = rootStatement(String(namespace), String(statementKey));
  if (!ed25519.verify(signature.slice(2), message, publicKey.slice(2)))
    throw new Malformed("the root key does not vouch for the statement key of the config document");
  return commitment;
}
