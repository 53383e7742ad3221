/** One run: what ran, with which key and PKPs, how it ended, and whether it would be permitted now. */
import { Link, useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { actionHashOf, type Cid } from "../../../protocol/ids";
import { useSigned } from "../../app/queries";
import {
  Badge,
  CodeBlock,
  Empty,
  Facts,
  Failure,
  Id,
  Notice,
  PageHead,
  Spinner,
  When,
} from "../../components/elements";
import { SafeNotice } from "../../components/SafeNotice";
import { dollars, duration, short } from "../../components/text";
import { useNames } from "./names";
import { OUTCOME_MEANINGS, outcomeText, outcomeWord } from "./outcomes";
import { Why } from "./Why";

const PAGE = 1_000;
const AROUND_SECONDS = 5;

export function RunPage(): ReactNode {
  const { run: place } = useParams({ from: "/activity/$run" });
  // When it began, so that it is found among all: an address without that time is of no run.
  const [, at = "0", id = place] = /^(\d{1,12})-(.+)$/.exec(place) ?? [];
  const seconds = Number(at);
  // A receipt names the executor's time, a record the relayer's.
  const { data, error, isLoading } = useSigned(`run-${place}`, (client) =>
    client.listRuns({ from: Math.max(0, seconds - AROUND_SECONDS), until: seconds + AROUND_SECONDS, page_size: PAGE }),
  );
  const run = data?.items.find(({ request_id }) => request_id === id);
  return (
    <>
      <Link to="/activity">All runs</Link>
      <PageHead title={`Run ${short(id)}`} />
      <Failure error={error} />
      <SafeNotice what="run" />
      {isLoading && <Spinner />}
      {data !== undefined && run === undefined && (
        <Empty title="No such run">
          <p>Runs are kept for as many days as the operator sets.</p>
        </Empty>
      )}
      {run !== undefined && <Details run={run} />}
    </>
  );
}

type Run = Awaited<ReturnType<Parameters<Parameters<typeof useSigned>[1]>[0]["listRuns"]>>["items"][number];

/** The PKP that a refused operation was about: the message ends with its address. */
const deniedPkp = ({ outcome, error_message: message = "" }: Run): string | undefined =>
  outcome === "permission_denied" ? /0x[0-9a-fA-F]{40}$/.exec(message)?.[0] : undefined;

function Details({ run }: { readonly run: Run }): ReactNode {
  const names = useNames();
  const isGood = run.outcome === "succeeded";
  return (
    <>
      <section className="card stack" aria-label="Details">
        {!isGood && (
          <Notice kind="error">
            <strong>{outcomeText(run.outcome)}.</strong> {OUTCOME_MEANINGS[run.outcome] ?? ""}
          </Notice>
        )}
        {run.error_message !== undefined && <CodeBlock what="Message" text={run.error_message} />}
        <Facts
          items={[
            [
              "Outcome",
              <Badge key="o" kind={isGood ? "success" : "error"}>
                {outcomeWord(run.outcome)}
              </Badge>,
            ],
            ["When", <When key="w" at={run.started_at * 1000} />],
            [
              "Action",
              <Link key="a" to="/actions/$action" params={{ action: actionHashOf(run.action_ipfs_cid as Cid) }}>
                {names.action(run.action_ipfs_cid)}
              </Link>,
            ],
            ["Code", <Id key="c" value={run.action_ipfs_cid} what="CID" />],
            ["Key", names.key(run.api_key_hash)],
            [
              "PKPs used",
              run.pkps_used.length === 0 ? (
                "none"
              ) : (
                <span key="p" className="row">
                  {run.pkps_used.map((pkp) => (
                    <Link key={pkp} to="/pkps/$pkp" params={{ pkp }}>
                      {names.pkp(pkp)}
                    </Link>
                  ))}
                </span>
              ),
            ],
            ["Time", duration(run.duration_ms)],
            ["Price", dollars(run.cost_cents)],
            ["Request", <Id key="r" value={run.request_id} what="request id" />],
            ...(run.receipt_sha256 === ""
              ? []
              : [["Receipt (SHA-256)", <Id key="s" value={run.receipt_sha256} what="receipt hash" />] as const]),
          ]}
        />
        <p className="soft small">
          Parameters, logs and responses are not stored: only the run’s answer has them. The message of a failed run is
          kept for a few days, and shown to the owner and to the key that ran.
        </p>
      </section>
      {!isGood && (
        <Why
          question={{ keyId: run.api_key_hash, cid: run.action_ipfs_cid, pkp: deniedPkp(run) ?? run.pkps_used[0] }}
          ran={run.outcome !== "permission_denied"}
        />
      )}
    </>
  );
}
