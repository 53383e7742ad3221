/**
 * The executor's part in writes, in this process: real signatures of throw-away payers, without its checks. For tests
 * of the relayer alone.
 */
import { HDNodeWallet, hexlify, keccak256, Mnemonic, Transaction, type Wallet } from "ethers";
import type { ExecutorAnswer, ExecutorRequest } from "../../protocol/executor";
import type { KeywrightError } from "../../protocol/errors";
import { decodeForward, forwarderCalldata } from "../../protocol/forward";
import { targetOf } from "../../protocol/budgets";
import type { Address } from "../../protocol/ids";
import { encodeTryMulticall } from "../../executor/writes/calldata";
import { bytesOfHex } from "../../protocol/hex";
import { encodeWrite } from "../../relayer/chain/abi/contract";
import type { ExecutorPort, ExecutorWriteCall } from "../../relayer/chain/types";

const SEED = Mnemonic.fromEntropy(new Uint8Array(32).fill(7));

export class LocalExecutor implements ExecutorPort {
  /** Thrown by the named call while set. */
  readonly failing = new Map<ExecutorWriteCall, KeywrightError>();
  readonly calls: ExecutorWriteCall[] = [];
  readonly #wallets = new Map<number, HDNodeWallet>();
  readonly #chainId: bigint;
  readonly #contractAddress: string;
  readonly #forwarderAddress: string;

  constructor(chainId: bigint, contractAddress: string, forwarderAddress: string) {
    this.#chainId = chainId;
    this.#contractAddress = contractAddress;
    this.#forwarderAddress = forwarderAddress;
  }

  wallet(payer: number): HDNodeWallet | Wallet {
    const known = this.#wallets.get(payer) ?? HDNodeWallet.fromMnemonic(SEED, `m/44'/60'/0'/0/${payer}`);
    this.#wallets.set(payer, known);
    return known;
  }

  async call<C extends ExecutorWriteCall>(name: C, request: ExecutorRequest<C>): Promise<ExecutorAnswer<C>> {
    this.calls.push(name);
    const failure = this.failing.get(name);
    if (failure !== undefined) throw failure;
    const answers: { [N in ExecutorWriteCall]: (asked: ExecutorRequest<N>) => ExecutorAnswer<N> } = {
      authorizeWrites: ({ writes }) => ({
        writes: writes.map(({ write }) => {
          const calldata = encodeWrite(write);
          return { calldata, tag: keccak256(calldata) };
        }),
      }),
      signAsPayer: (asked) => {
        const calls = asked.calls.map(({ calldata }) => bytesOfHex(calldata));
        const data = hexlify(calls.length === 1 ? (calls[0] ?? "0x") : encodeTryMulticall(calls));
        return this.#sign(asked.payer, {
          ...asked,
          to: targetOf(data, this.#contractAddress as Address),
          data,
          gasLimit: BigInt(asked.gasLimit),
        });
      },
      signForwards: (asked) => {
        const data = forwarderCalldata(asked.forwards.map(decodeForward), this.wallet(asked.payer).address as Address);
        return this.#sign(asked.payer, {
          ...asked,
          to: this.#forwarderAddress,
          data,
          gasLimit: BigInt(asked.gasLimit),
        });
      },
      signNoop: (asked) =>
        this.#sign(asked.payer, { ...asked, to: this.wallet(asked.payer).address, data: "0x", gasLimit: 21_000n }),
      signTopUp: (asked) =>
        this.#sign(0, {
          ...asked,
          to: this.wallet(asked.toPayer).address,
          data: "0x",
          gasLimit: 21_000n,
          value: BigInt(asked.amountWei),
        }),
      payers: ({ count }) => ({
        adminPayer: this.wallet(0).address,
        payers: Array.from({ length: count }, (_, index) => this.wallet(index + 1).address),
      }),
    };
    return answers[name](request);
  }

  #sign(
    payer: number,
    { to, data, gasLimit, nonce, maxFeePerGas, maxPriorityFeePerGas, value = 0n }: Unsigned,
  ): { rawTransaction: string; hash: string } {
    const fees = { maxFeePerGas: BigInt(maxFeePerGas), maxPriorityFeePerGas: BigInt(maxPriorityFeePerGas) };
    const transaction = Transaction.from({
      type: 2,
      chainId: this.#chainId,
      to,
      data,
      gasLimit,
      nonce,
      value,
      ...fees,
    });
    transaction.signature = this.wallet(payer).signingKey.sign(transaction.unsignedHash);
    return { rawTransaction: transaction.serialized, hash: transaction.hash ?? "" };
  }
}

interface Unsigned {
  to: string;
  data: string;
  gasLimit: bigint;
  nonce: number;
  maxFeePerGas: string;
  maxPriorityFeePerGas: string;
  value?: bigint;
}
