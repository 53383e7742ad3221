import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Button } from "../../components/Button";
import { saveFile } from "../../components/saveFile";

/** The signed statement of what ran, which the service does not keep. */
export function Receipt({ receipt }: { readonly receipt: string }): ReactNode {
  const run = requestOf(receipt);
  return (
    <div className="row">
      <Button size="small" onPress={() => saveFile("receipt.jws", `${receipt}\n`)}>
        Download receipt
      </Button>
      {run !== undefined && (
        <Link to="/activity/$run" params={{ run: `${Math.floor(run.started_at_ms / 1000)}-${run.request_id}` }}>
          Show this run
        </Link>
      )}
      <span className="soft small">The receipt proves to others which code ran. The service keeps its hash only.</span>
    </div>
  );
}

/** What a receipt says, not checked here. */
function requestOf(receipt: string): { readonly request_id: string; readonly started_at_ms: number } | undefined {
  const [, payload = ""] = receipt.split(".") ?? [];
  try {
    const bytes = Uint8Array.from(atob(payload.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) as { request_id: string; started_at_ms: number };
  } catch {
    return undefined;
  }
}
