/** Whether a key may run an action, asked of the contract: also for a run that was refused and left no record. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useActions, usePkps } from "../../app/queries";
import { Notice, PageHead } from "../../components/elements";
import { fieldOf, Select, TextField } from "../../components/Field";
import { short } from "../../components/text";
import { CID } from "../actions/codes";
import { useNames } from "./names";
import { Why } from "./Why";

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

export function Explain(): ReactNode {
  const navigate = useNavigate({ from: "/why" });
  const [asked, setAsked] = useAsked();
  const { key = "", action = "", pkp = "" } = asked;
  const names = useNames();
  const actions = useActions().items;
  const pkps = usePkps().items;
  const change = (part: Asked): void => {
    setAsked({ ...asked, ...part });
    void navigate({ search: { ...asked, ...part }, replace: true });
  };
  const field = fieldOf({ key, action, pkp }, change);
  const keyOptions = withCurrent(names.keyOptions, key);
  const pkpOptions = pkps.map(({ wallet_address: address, name }) => [address, name || short(address)] as const);
  const cid = action.trim();
  const isAsked = key !== "" && cid !== "";
  return (
    <>
      <PageHead
        title="Why was it refused?"
        about="May this key run this action, with this PKP? The contract answers. Nothing runs, and nothing is charged."
      />
      <section className="card stack" aria-label="Question">
        <div className="two">
          <Select label="Key" options={[["", "Choose a key"], ...keyOptions]} {...field("key")} />
          <Select
            label="PKP"
            options={[["", "None: the key and the action alone"], ...withCurrent(pkpOptions, pkp)]}
            {...field("pkp")}
          />
        </div>
        <TextField label="Action" code list="actions-by-cid" placeholder="The CID of the code" {...field("action")} />
        <datalist id="actions-by-cid">
          {actions.map(
            ({ action_ipfs_cid: one, name }) => one !== undefined && <option key={one} value={one} label={name} />,
          )}
        </datalist>
      </section>
      {isAsked && !CID.test(cid) && <Notice>This is no CID: one begins with Qm and has 46 characters.</Notice>}
      {isAsked && CID.test(cid) && (
        <Why
          key={`${key} ${cid} ${pkp}`}
          question={{ keyId: key, cid, ...(ADDRESS.test(pkp) ? { pkp } : {}) }}
          isPage
        />
      )}
    </>
  );
}

type Asked = Partial<Record<"key" | "action" | "pkp", string>>;
const textOf = ({ key = "", action = "", pkp = "" }: Asked): string => [key, action, pkp].join(" ");

/** The address follows what is typed, a moment later; what it names otherwise is a link that was opened here. */
function useAsked(): readonly [Asked, (next: Asked) => void] {
  const search = useSearch({ from: "/why" });
  const [asked, setAsked] = useState<Asked>(search);
  const following = useRef(new Set<string>());
  useEffect(() => {
    if (textOf(search) !== textOf(asked) && following.current.has(textOf(search))) return;
    following.current.clear();
    setAsked(search);
    // Not when the question changes: the address is about to.
  }, [search]);
  const ask = (next: Asked): void => {
    following.current.add(textOf(next));
    setAsked(next);
  };
  return [asked, ask];
}

type Options = readonly (readonly [value: string, label: string])[];

/** What a link asked about can be chosen although the account does not list it. */
const withCurrent = (options: Options, value: string): Options =>
  value === "" || options.some(([one]) => one === value) ? options : [...options, [value, short(value)]];
