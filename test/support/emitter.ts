/** A contract that logs one topic, the first word of its calldata, with the second as data. */
import { AbiCoder, ContractFactory, type Signer, type TransactionReceipt } from "ethers";

const CODE = "0x600f600c600039600f6000f3" + "60203560005260003560206000a100";

export interface Emitter {
  readonly address: string;
  emit(topic: string, value: number): Promise<TransactionReceipt>;
}

export async function deployEmitter(signer: Signer): Promise<Emitter> {
  const contract = await new ContractFactory([], CODE, signer).deploy();
  await contract.waitForDeployment();
  const address = await contract.getAddress();
  return {
    address,
    emit: async (topic, value) => {
      const data = AbiCoder.defaultAbiCoder().encode(["bytes32", "uint256"], [topic, value]);
      const receipt = await (await signer.sendTransaction({ to: address, data })).wait();
      if (receipt === null) throw new Error("not mined");
      return receipt;
    },
  };
}
