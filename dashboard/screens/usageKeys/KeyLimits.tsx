import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import type { Answer } from "../../../client";
import { everyPage, readAgain, readerOf, useSigned, type UsageKey } from "../../app/queries";
import { FormDialog } from "../../components/Dialog";
import { Failure, Spinner } from "../../components/elements";
import { TextField } from "../../components/Field";
import { SafeNotice } from "../../components/SafeNotice";
import { centsIn, dollars, plural, quoted } from "../../components/text";
import { useSession } from "../../session/context";

interface Props {
  readonly usageKey: UsageKey;
  readonly onClose: () => void;
}
type Limits = Answer<"listUsageKeyLimits">[number];

/** The limits of a day and a minute, which the service holds beside what the contract says of the key. */
export function KeyLimits({ usageKey, onClose }: Props): ReactNode {
  // Saving sets all of them: a form that is filled from an older answer would undo what others have set since.
  const { data, error, isLoading } = useSigned(
    "key limits",
    ({ listUsageKeyLimits }) => everyPage(1_000, (page) => listUsageKeyLimits(page)),
    { isKept: false },
  );
  if (data !== undefined)
    return (
      <LimitsForm
        usageKey={usageKey}
        limits={data.find(({ api_key_hash: hash }) => hash === usageKey.id)}
        onClose={onClose}
      />
    );
  return (
    <FormDialog onClose={onClose} title="Limits" submit="Save" ready={false} onSubmit={() => Promise.resolve()}>
      <SafeNotice what="limits" />
      {isLoading && <Spinner />}
      <Failure error={error} />
    </FormDialog>
  );
}

/** To the service 0 is no limit, which nobody means who types it. */
const isZero = (typed: string, limit: number): boolean => typed.trim() !== "" && limit === 0;

function LimitsForm({ usageKey, limits, onClose }: Props & { readonly limits: Limits | undefined }): ReactNode {
  const client = readerOf(useSession());
  const queries = useQueryClient();
  const [perDay, setPerDay] = useState(() => (limits?.cents_per_day ? String(limits.cents_per_day / 100) : ""));
  const [perMinute, setPerMinute] = useState(() => (limits?.runs_per_minute ? String(limits.runs_per_minute) : ""));
  const [origins, setOrigins] = useState(() => limits?.origins.join("\n") ?? "");
  const submit = async (): Promise<void> => {
    const cents = perDay.trim() === "" ? 0 : centsIn(perDay);
    if (cents === undefined) throw new Error("The credit is no sum: write it like 5 or 2.50, or leave it empty.");
    if (!/^\d*$/.test(perMinute.trim())) throw new Error("The runs are no whole number.");
    if (isZero(perDay, cents) || isZero(perMinute, Number(perMinute)))
      throw new Error("A limit is more than 0. An empty field is no limit; to stop the key, revoke it.");
    await client.setUsageKeyLimits({
      usage_api_key: usageKey.id,
      cents_per_day: cents,
      runs_per_minute: Number(perMinute),
      origins: origins.split(/[\s,]+/).filter((origin) => origin !== ""),
    });
    await readAgain(queries, { queryKey: ["signed", "key limits"] });
  };
  return (
    <FormDialog
      onClose={onClose}
      title={`Limits of ${quoted(usageKey.name, "this key")}`}
      about="For a key that others may see, as in a web page. The service holds these limits, not the contract."
      submit="Save"
      onSubmit={submit}
    >
      <div className="two">
        <TextField
          label="Dollars in 24 hours"
          inputMode="decimal"
          placeholder="No limit"
          value={perDay}
          onChange={setPerDay}
          hint={limits === undefined ? "Runs and changes together." : `${dollars(limits.cents_used)} are used.`}
        />
        <TextField
          label="Runs in a minute"
          inputMode="numeric"
          placeholder="No limit"
          value={perMinute}
          onChange={setPerMinute}
          hint={
            limits === undefined ? "Counted when they begin." : `${plural(limits.runs_used, "run")} in the last one.`
          }
        />
      </div>
      <TextField
        label="Web pages that may use it"
        code
        lines={2}
        placeholder="https://app.example, one a line"
        value={origins}
        onChange={setOrigins}
        hint="Their origins. A hint that browsers follow, and no boundary: other programs can name any page."
      />
    </FormDialog>
  );
}
