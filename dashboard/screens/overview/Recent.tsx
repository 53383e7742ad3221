import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useSigned } from "../../app/queries";
import { Badge, When } from "../../components/elements";
import { useSession } from "../../session/context";
import { eventDetails, eventKind, eventName } from "../activity/eventText";
import { useNames } from "../activity/names";
import { outcomeWord } from "../activity/outcomes";

const SHOWN = 5;

/** The newest runs and changes. A wallet would have to sign for them: it finds them on the screen of activity. */
export function Recent(): ReactNode {
  const session = useSession();
  return session.kind === "key" ? <RecentOfKey /> : null;
}

function RecentOfKey(): ReactNode {
  const names = useNames(true);
  const runs = useSigned("recent-runs", (client) => client.listRuns({ page_size: SHOWN })).data?.items ?? [];
  const { data } = useSigned("recent-events", (client) => client.events({ order: "newest", limit: SHOWN }));
  const events = data?.events ?? [];
  if (runs.length + events.length === 0) return null;
  return (
    <section className="card stack-s" aria-label="Recent activity">
      <div className="row-between">
        <h2>Recent activity</h2>
        <Link to="/activity">All activity</Link>
      </div>
      <div className="two">
        <ul className="lines single" aria-label="Newest runs">
          {runs.length === 0 && <li className="soft">No runs yet</li>}
          {runs.map((run) => (
            <li key={run.request_id}>
              <Link to="/activity/$run" params={{ run: `${run.started_at}-${run.request_id}` }}>
                {names.action(run.action_ipfs_cid)}
              </Link>
              <Badge kind={run.outcome === "succeeded" ? "success" : "error"}>{outcomeWord(run.outcome)}</Badge>
              <span className="soft small end">
                <When at={run.started_at * 1000} />
              </span>
            </li>
          ))}
        </ul>
        <ul className="lines single" aria-label="Newest changes">
          {events.map((event) => (
            <li key={event.cursor}>
              <span>{eventName(eventKind(event))}</span>
              <span className="soft small end">{eventDetails(event, names)}</span>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
