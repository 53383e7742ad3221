import { Link } from "@tanstack/react-router";
import { Tabs } from "radix-ui";
import type { ReactNode } from "react";
import { Notice, PageHead } from "../../components/elements";
import { useIsReadable } from "../../session/context";
import { Events } from "./Events";
import { Export } from "./Export";
import { Runs } from "./Runs";

export function Activity(): ReactNode {
  const isReadable = useIsReadable();
  return (
    <Tabs.Root defaultValue="runs" className="stack">
      <PageHead
        title="Activity"
        about="Every run, and every change on the chain. Parameters, logs and responses are not stored."
      >
        {isReadable && (
          <Tabs.List className="tabs" aria-label="What to show">
            <Tabs.Trigger value="runs">Runs</Tabs.Trigger>
            <Tabs.Trigger value="events">Events</Tabs.Trigger>
          </Tabs.List>
        )}
        {isReadable && <Export />}
        <Link className="button" to="/why">
          Why was it refused?
        </Link>
      </PageHead>
      {isReadable ? (
        <>
          <Tabs.Content value="runs" tabIndex={-1}>
            <Runs />
          </Tabs.Content>
          <Tabs.Content value="events" tabIndex={-1}>
            <Events />
          </Tabs.Content>
        </>
      ) : (
        <Notice>Sign in with a usage key of the account to see its activity: a multisig cannot sign for it.</Notice>
      )}
    </Tabs.Root>
  );
}
