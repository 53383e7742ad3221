import { useState, type ReactNode } from "react";
import { useGroupNames, useGroups, type Group, type UsageKey } from "../../app/queries";
import { useChanges } from "../../changes/ChangesProvider";
import { createUsageKey, updateUsageKey } from "../../changes/operations";
import { SCOPE_FLAGS, SCOPE_LISTS, scopeSentences } from "../../changes/scopes";
import { FormDialog } from "../../components/Dialog";
import { Absent, Notice } from "../../components/elements";
import { Check, Picker, Select, StringsFields, TextField, type Option } from "../../components/Field";
import { scopesOf, type Scopes } from "./scopesOf";
import { CAP_HINT, capCents } from "./cap";

interface Props {
  readonly onClose: () => void;
  /** The key to change; without it a new one is made. */
  readonly usageKey?: UsageKey;
  /** Initially selected groups. */
  readonly groups?: readonly string[];
  readonly name?: string;
}

export function UsageKeyForm({ onClose, usageKey, groups: firstGroups = [], name = "" }: Props): ReactNode {
  const { perform } = useChanges();
  const groups = useGroups();
  const names = useGroupNames(groups.items);
  const [scopes, setScopes] = useState(() => (usageKey === undefined ? blank(name, firstGroups) : scopesOf(usageKey)));

  const submit = async (): Promise<boolean> => {
    if (scopes.balance === NO_SUM) throw new Error(`The spending cap is no sum. ${CAP_HINT}`);
    const { state } =
      usageKey === undefined
        ? await perform(createUsageKey(scopes, names))
        : await perform(updateUsageKey(usageKey.id, scopes, names));
    return state !== "cancelled";
  };

  return (
    <FormDialog
      wide
      onClose={onClose}
      title={usageKey === undefined ? "Create a usage key" : "Change what this key may do"}
      submit={usageKey === undefined ? "Create usage key" : "Save"}
      onSubmit={submit}
    >
      <StringsFields
        value={scopes}
        onChange={({ name: label, description }) => setScopes({ ...scopes, name: label, description })}
        placeholder="Payout bot"
      />
      <ScopeFields scopes={scopes} groups={groups.items} onChange={setScopes} />
      <Absent from={groups}>{null}</Absent>
      <Terms scopes={scopes} onChange={setScopes} />
      <Notice kind="success">
        <strong>What this key will be able to do</strong>
        <ul aria-label="What this key will be able to do">
          {scopeSentences(scopes, names).map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      </Notice>
    </FormDialog>
  );
}

function blank(name: string, groups: readonly string[]): Scopes {
  return {
    name,
    description: "",
    can_create_groups: false,
    can_delete_groups: false,
    can_create_pkps: false,
    manage_ipfs_ids_in_groups: [],
    add_pkp_to_groups: [],
    remove_pkp_from_groups: [],
    execute_in_groups: [...groups],
    expiration: "0",
    balance: "0",
  };
}

interface FieldsProps {
  readonly scopes: Scopes;
  readonly onChange: (scopes: Scopes) => void;
}

const EVERY_GROUP: Option = { id: "0", label: "Every group", hint: "Also those made later" };

function ScopeFields({ scopes, groups, onChange }: FieldsProps & { readonly groups: readonly Group[] }): ReactNode {
  const options = [
    EVERY_GROUP,
    ...groups.map(({ id, name }) => ({ id, label: name || `Group ${id}`, hint: `Group ${id}` })),
  ];
  const [run, ...manage] = SCOPE_LISTS;
  const picker = ([list, what]: (typeof SCOPE_LISTS)[number]): ReactNode => (
    <Picker
      key={list}
      legend={`May ${what} in`}
      options={options}
      chosen={scopes[list].map(String)}
      onChange={(chosen) => onChange({ ...scopes, [list]: onlyEvery(chosen) })}
    />
  );
  return (
    <>
      {picker(run)}
      <details>
        <summary>More permissions</summary>
        <div className="stack more">
          {manage.map(picker)}
          <fieldset className="stack-s">
            <legend className="label">In the whole account</legend>
            {SCOPE_FLAGS.map(([flag, what]) => (
              <Check
                key={flag}
                label={`May ${what}`}
                checked={scopes[flag]}
                onChange={(on) => onChange({ ...scopes, [flag]: on })}
              />
            ))}
          </fieldset>
        </div>
      </details>
    </>
  );
}

/** "Every group" excludes any other selection. */
const onlyEvery = (chosen: readonly string[]): string[] =>
  chosen.at(-1) === "0" ? ["0"] : chosen.filter((id) => id !== "0");

const DAYS = [
  ["0", "Never"],
  ["1", "In a day"],
  ["7", "In a week"],
  ["30", "In 30 days"],
  ["365", "In a year"],
  ["date", "On a day I choose"],
] as const;

function Terms({ scopes, onChange }: FieldsProps): ReactNode {
  const [choice, setChoice] = useState(scopes.expiration === "0" ? "0" : "date");
  // As typed: a year's first digits are a date already.
  const [date, setDate] = useState(() => dateOf(scopes.expiration));
  const [cap, setCap] = useState(() => capText(scopes.balance));
  const choose = (next: string): void => {
    setChoice(next);
    if (next === "date") return;
    const expiration = next === "0" ? "0" : String(Math.floor(Date.now() / 1000) + Number(next) * 86_400);
    setDate(dateOf(expiration));
    onChange({ ...scopes, expiration });
  };
  return (
    <div className="two">
      <div className="stack-s">
        <Select label="Expires" value={choice} options={DAYS} onChange={choose} />
        {choice === "date" && (
          <TextField
            label="Last day"
            type="date"
            required
            min={dateOf(String(Math.floor(Date.now() / 1000)))}
            max="9999-12-31"
            value={date}
            onChange={(next) => {
              setDate(next);
              onChange({ ...scopes, expiration: endOfDay(next) });
            }}
          />
        )}
      </div>
      <TextField
        label="Spending cap in dollars"
        inputMode="decimal"
        placeholder="No cap"
        value={cap}
        onChange={(text) => {
          setCap(text);
          onChange({ ...scopes, balance: capCents(text) ?? NO_SUM });
        }}
        hint={scopes.balance === NO_SUM ? CAP_HINT : "Over the key's whole life."}
      />
    </div>
  );
}

/** Days are in the user's time zone: a key whose last day is the 5th expires at the end of the 5th there. */
function dateOf(expiration: string): string {
  if (expiration === "0") return "";
  const at = new Date(Number(expiration) * 1000);
  return [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
}
function endOfDay(date: string): string {
  const seconds = Math.floor(new Date(`${date}T23:59:59`).getTime() / 1000);
  return seconds > 0 ? String(seconds) : "0";
}

/** An unreadable amount, with which no key is created. */
const NO_SUM = "";
const capText = (balance: string): string =>
  balance === "0" ? "" : (Number(balance) / 100).toFixed(2).replace(/\.00$/, "");
