import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { readAgain, useActions } from "../../app/queries";
import { useChanges } from "../../changes/ChangesProvider";
import { FormDialog } from "../../components/Dialog";
import { Choices, fieldOf, Select, TextField } from "../../components/Field";
import { moment } from "../../components/text";
import { useSession } from "../../session/context";
import { CAP_HINT, capCents } from "../usageKeys/cap";
import { createTrigger, type Fields } from "./changes";
import { preview, scheduleSentence } from "./sentences";

const EVERY = [
  ["*/5 * * * *", "every five minutes"],
  ["0 * * * *", "every hour"],
  ["0 9 * * *", "every day at 9:00"],
  ["0 9 * * 1-5", "every weekday at 9:00"],
  ["0 9 * * 1", "every Monday at 9:00"],
  ["", "at other times (cron)"],
] as const;
const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

interface Draft {
  readonly name: string;
  readonly cid: string;
  readonly params: string;
  readonly kind: "schedule" | "event" | "hook";
  readonly cron: string;
  readonly isCustom: boolean;
  readonly timeZone: string;
  readonly missed: "skip" | "once";
  readonly address: string;
  readonly topic: string;
  readonly confirmations: string;
  readonly verification: "none" | "hmac" | "standard_webhooks";
  readonly cap: string;
}

const EMPTY: Draft = {
  ...{ name: "", cid: "", params: "{}", kind: "schedule", cron: "0 9 * * 1-5", isCustom: false, timeZone: OWN_ZONE },
  ...{ missed: "skip", address: "", topic: "", confirmations: "1", verification: "hmac", cap: "" },
};

/** The request's fields. @throws Error saying what is wrong with the draft */
function fieldsOf(draft: Draft): Fields {
  const { name, cid, kind, cron, timeZone, missed, address, topic, confirmations, verification, cap } = draft;
  const params = JSON.parse(draft.params) as Record<string, unknown>;
  const dropped = missed === "skip" ? { missed } : {};
  const cause = {
    schedule: { schedule: { cron, time_zone: timeZone, missed } },
    event: {
      event: { address, topics: topic === "" ? [] : [topic], confirmations: Number(confirmations), ...dropped },
    },
    hook: { hook: { verification, ...dropped } },
  }[kind];
  const balance = capCents(cap);
  if (balance === undefined) throw new Error(`The spending cap is no sum. ${CAP_HINT}`);
  return { name, action_ipfs_cid: cid, params, balance, ...cause };
}

export function CreateTrigger({ onClose }: { readonly onClose: () => void }): ReactNode {
  const { perform } = useChanges();
  const session = useSession();
  const queries = useQueryClient();
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const set = (change: Partial<Draft>): void => setDraft({ ...draft, ...change });
  const field = fieldOf(draft, set);
  return (
    <FormDialog
      wide
      onClose={onClose}
      title="Create a trigger"
      about="It runs one action by itself, with a key that only the TEE knows. What it is never changes."
      submit="Create trigger"
      ready={draft.cid !== ""}
      onSubmit={async () => {
        if ((await perform(createTrigger(fieldsOf(draft)))).state === "cancelled") return false;
        // With a key the change has them read again.
        if (session.kind === "wallet") await readAgain(queries, { queryKey: ["signed"] });
        return true;
      }}
    >
      <TextField label="Name" required placeholder="Morning report" {...field("name")} />
      <What draft={draft} set={set} />
      <Choices
        legend="Fires"
        value={draft.kind}
        options={[
          ["schedule", "on a schedule"],
          ["event", "on an event of a contract"],
          ["hook", "when a URL is called"],
        ]}
        onChange={(kind) => set({ kind, missed: kind === "schedule" ? "skip" : "once" })}
      />
      <Cause draft={draft} set={set} />
      <AfterOutage draft={draft} set={set} />
      <TextField
        label="Spending cap in dollars"
        inputMode="decimal"
        hint={`Over its life. ${CAP_HINT}`}
        {...field("cap")}
      />
    </FormDialog>
  );
}

interface Part {
  readonly draft: Draft;
  readonly set: (change: Partial<Draft>) => void;
}

function What({ draft, set }: Part): ReactNode {
  const { items } = useActions();
  const field = fieldOf(draft, set);
  const known = items.flatMap(({ action_ipfs_cid: cid, name }) =>
    cid === undefined ? [] : [[cid, name || cid] as const],
  );
  return (
    <>
      {known.length > 0 && (
        <Select
          label="Action"
          value={known.some(([cid]) => cid === draft.cid) ? draft.cid : ""}
          options={[["", "Another one, by its CID"], ...known]}
          onChange={(cid) => set({ cid })}
        />
      )}
      <TextField
        label="CID of the action"
        code
        required
        value={draft.cid}
        onChange={(cid) => set({ cid: cid.trim() })}
        hint="A group of the account has to list it."
      />
      <TextField label="Params (JSON)" code lines={3} {...field("params")} />
    </>
  );
}

function Cause({ draft, set }: Part): ReactNode {
  const field = fieldOf(draft, set);
  if (draft.kind === "schedule") return <ScheduleFields draft={draft} set={set} />;
  if (draft.kind === "hook")
    return (
      <Select
        label="The sender proves itself"
        options={[
          ["hmac", "by an HMAC of the body, as GitHub does"],
          ["standard_webhooks", "by Standard Webhooks"],
          ["none", "by knowing the URL only"],
        ]}
        {...field("verification")}
      />
    );
  return (
    <>
      <TextField label="Contract" code required placeholder="0x…" {...field("address")} />
      <TextField label="First topic" code hint="Empty: every event." {...field("topic")} />
      <TextField
        label="Confirmations"
        inputMode="numeric"
        hint="Blocks, the event's own included."
        {...field("confirmations")}
      />
    </>
  );
}

function ScheduleFields({ draft, set }: Part): ReactNode {
  const { cron, timeZone, isCustom } = draft;
  const field = fieldOf(draft, set);
  const { due, problem } = preview(cron, timeZone);
  return (
    <>
      <Select
        label="When"
        value={isCustom ? "" : cron}
        options={EVERY}
        onChange={(chosen) => set(chosen === "" ? { isCustom: true } : { isCustom: false, cron: chosen })}
      />
      {isCustom && (
        <TextField
          label="Cron"
          code
          required
          {...field("cron")}
          hint="Minute, hour, day of month, month, day of week."
        />
      )}
      <TextField label="Time zone" required {...field("timeZone")} />
      <p className="small" role="status">
        {problem ?? `${scheduleSentence(cron, timeZone)}. Next: ${due.map(moment).join(" · ")}`}
      </p>
    </>
  );
}

function AfterOutage({ draft, set }: Part): ReactNode {
  const isSchedule = draft.kind === "schedule";
  return (
    <Select
      label="After an outage"
      options={[
        ["skip", isSchedule ? "skip what was missed" : "drop what waited when the TEE restarted"],
        ["once", isSchedule ? "make the last missed firing late" : "fire for what waited"],
      ]}
      {...fieldOf(draft, set)("missed")}
    />
  );
}
