/** Builds a policy from plain sentences: what its code signs, its CID, and what it would say to a transaction. */
import { useQuery } from "@tanstack/react-query";
import { config } from "zod";
import { useState, type ReactNode } from "react";
import type { Policy } from "../../../client/policies";
import { Button } from "../../components/Button";
import { CodeBlock, Facts, Failure, Id, Notice, PageHead } from "../../components/elements";
import { Choices, fieldOf, Select, TextField } from "../../components/Field";
import { useSession } from "../../session/context";
import { useMay } from "../../session/may";
import { AddAction } from "../actions/AddAction";
import { DryRun } from "./DryRun";
import { blankPolicy, policyOf, type PolicyForm } from "./form";
import { policySentences } from "./sentences";

// Without this zod probes for eval, which this page's CSP forbids and reports.
config({ jitless: true });

const KINDS = [
  ["coin", "Transfers of the coin"],
  ["token", "Transfers of a token"],
  ["function", "A function of a contract"],
] as const;

export function Policies(): ReactNode {
  const { config: chain } = useSession();
  const may = useMay();
  const [form, setForm] = useState(() => blankPolicy(chain.chain_id));
  const [adding, setAdding] = useState(false);
  const isEmpty = form.to.trim() === "" && form.signature.trim() === "";
  const { data: policy, error } = useQuery({
    queryKey: ["policy", form],
    queryFn: () => policyOf(form),
    enabled: !isEmpty,
    staleTime: Infinity,
  });
  return (
    <>
      <PageHead
        title="Policies"
        about={
          "Code that signs only what you state here. Nobody who runs it can widen it: the rules are part of the code," +
          " and a group lists exactly this code."
        }
      />
      <div className="runner">
        <section className="card stack" aria-label="Rules">
          <Rules form={form} onChange={(part) => setForm({ ...form, ...part })} />
        </section>
        <section className="stack" aria-label="The policy">
          {isEmpty && <Notice>Say what may be signed: the policy appears here.</Notice>}
          {!isEmpty && <Failure error={error} />}
          {!isEmpty && policy !== undefined && (
            <>
              <Result policy={policy} />
              {may.all && (
                <Button variant="primary" onPress={() => setAdding(true)}>
                  Add as an action
                </Button>
              )}
              <DryRun policy={policy} form={form} />
            </>
          )}
        </section>
      </div>
      {adding && policy !== undefined && (
        <AddAction
          code={policy.code}
          description={policySentences(policy).join(" ")}
          onClose={() => setAdding(false)}
        />
      )}
    </>
  );
}

interface RulesProps {
  readonly form: PolicyForm;
  readonly onChange: (part: Partial<PolicyForm>) => void;
}

function Rules({ form, onChange }: RulesProps): ReactNode {
  const field = fieldOf(form, onChange);
  const isCoin = form.kind === "coin";
  const isFunction = form.kind === "function";
  return (
    <>
      <Choices legend="May sign" options={KINDS} {...field("kind")} />
      <TextField label="Chain" inputMode="numeric" {...field("chain")} />
      {!isCoin && <TextField label={isFunction ? "Contract" : "Token"} code placeholder="0x…" {...field("token")} />}
      {isFunction ? (
        <FunctionRules form={form} onChange={onChange} />
      ) : (
        <>
          <TextField label="To these addresses" code lines={2} placeholder="0x…, one a line" {...field("to")} />
          <div className="two">
            <TextField label="At most, each time" inputMode="decimal" placeholder="0.25" {...field("amount")} />
            {!isCoin && <TextField label="Decimals of the token" inputMode="numeric" {...field("decimals")} />}
          </div>
        </>
      )}
      <Budget form={form} onChange={onChange} />
      <Conditions form={form} onChange={onChange} />
    </>
  );
}

function FunctionRules({ form, onChange }: RulesProps): ReactNode {
  const field = fieldOf(form, onChange);
  return (
    <>
      <TextField label="Function" code placeholder="approve(address,uint256)" {...field("signature")} />
      <TextField
        label="Arguments, one rule a line"
        code
        lines={3}
        placeholder={"0x…\nat most 1000"}
        hint="A list of values, “at most 1000”, “10 to 100”, or “any”."
        {...field("rules")}
      />
    </>
  );
}

const WINDOWS = [
  ["day", "Day"],
  ["hour", "Hour"],
] as const;

function Budget({ form, onChange }: RulesProps): ReactNode {
  const field = fieldOf(form, onChange);
  const unit = { coin: "In the coin", token: "In the token", function: "In smallest units" }[form.kind];
  return (
    <div className="two">
      <TextField
        label="At most, all together"
        inputMode="decimal"
        placeholder="No budget"
        hint={`${unit}, counted on the chain before each signature.`}
        {...field("sum")}
      />
      <Select label="Counted per" options={WINDOWS} {...field("window")} />
      {form.kind === "function" && form.sum.trim() !== "" && (
        <TextField
          label="Argument that counts"
          inputMode="numeric"
          hint="Its number, from 1; an unsigned one."
          {...field("counted")}
        />
      )}
    </div>
  );
}

function Conditions({ form, onChange }: RulesProps): ReactNode {
  const field = fieldOf(form, onChange);
  return (
    <details>
      <summary>Hours and approvers</summary>
      <div className="stack more">
        <TextField label="Only in these hours (UTC)" placeholder="8-18" {...field("hours")} />
        <TextField
          label="Approvers"
          code
          lines={2}
          placeholder="0x…, one a line"
          hint="They sign each transaction’s text with their wallets."
          {...field("approvers")}
        />
        <TextField label="How many of them must approve" inputMode="numeric" {...field("threshold")} />
      </div>
    </details>
  );
}

function Result({ policy }: { readonly policy: Policy }): ReactNode {
  return (
    <div className="card stack">
      <h2>What it signs</h2>
      <ul className="stack-s" aria-label="What it signs">
        {policySentences(policy).map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      <Facts items={[["CID", <Id key="c" value={policy.cid} what="CID" />]]} />
      <details>
        <summary>Code</summary>
        <CodeBlock what="Code of the policy" text={policy.code} />
      </details>
    </div>
  );
}
