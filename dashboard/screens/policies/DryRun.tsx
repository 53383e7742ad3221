import { Interface } from "ethers";
import { useState, type ReactNode } from "react";
import type { Policy } from "../../../client/policies";
import { Notice } from "../../components/elements";
import { TextField } from "../../components/Field";
import { refusalOf } from "./dryRun";
import type { Shared } from "./sentences";
import { unitsOf, type PolicyForm } from "./form";

const TOKEN = new Interface(["function transfer(address,uint256)"]);
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/** What the policy would say to a transaction. Nothing is sent or signed. */
export function DryRun({ policy, form }: { readonly policy: Policy; readonly form: PolicyForm }): ReactNode {
  const [to, setTo] = useState("");
  const [amount, setAmount] = useState("");
  const [data, setData] = useState("");
  const [hour, setHour] = useState(String(new Date().getUTCHours()));
  const isFunction = form.kind === "function";
  const verdict = judged(policy, form, { to: to.trim(), amount, data: data.trim(), hour: Number(hour) });
  return (
    <section className="card stack" aria-label="Try it">
      <h2>Try a transaction</h2>
      {isFunction ? (
        <TextField label="Data" code lines={2} placeholder="0x…" value={data} onChange={setData} />
      ) : (
        <div className="two">
          <TextField label="Recipient" code placeholder="0x…" value={to} onChange={setTo} />
          <TextField label="Amount" inputMode="decimal" value={amount} onChange={setAmount} />
        </div>
      )}
      <TextField label="Hour (UTC)" inputMode="numeric" value={hour} onChange={setHour} />
      <div role="status">{verdict}</div>
    </section>
  );
}

interface Inputs {
  readonly to: string;
  readonly amount: string;
  readonly data: string;
  readonly hour: number;
}

function judged(policy: Policy, form: PolicyForm, inputs: Inputs): ReactNode {
  try {
    const transaction = transactionOf(form, inputs);
    if (transaction === undefined) return <span className="soft">Nothing is sent or signed.</span>;
    const refusal = refusalOf(policy, { ...transaction, hour: inputs.hour });
    if (refusal !== undefined) return <Notice kind="warning">It would refuse: {refusal}.</Notice>;
    const { approvers, budgets = [] } = policy.parameters as Shared;
    const conditions = [
      ...(approvers === undefined ? [] : [`with ${approvers.threshold} of its approvals`]),
      ...(budgets.length === 0 ? [] : ["as long as the budget lasts"]),
      ...(budgets.some(({ amount }) => amount === "fee") ? ["with fees that fit"] : []),
    ];
    return <Notice kind="success">{["It would sign this", ...conditions].join(", ")}.</Notice>;
  } catch (error) {
    return <Notice kind="warning">{error instanceof Error ? error.message : ""}</Notice>;
  }
}

function transactionOf(form: PolicyForm, { to, amount, data }: Inputs) {
  if (form.kind === "function") return data === "" ? undefined : { to: form.token.trim(), value: 0n, data };
  if (!ADDRESS.test(to) || amount.trim() === "") return undefined;
  if (form.kind === "coin") return { to, value: BigInt(unitsOf(amount, 18)), data: "0x" };
  const units = unitsOf(amount, Number(form.decimals));
  return { to: form.token.trim(), value: 0n, data: TOKEN.encodeFunctionData("transfer", [to.toLowerCase(), units]) };
}
