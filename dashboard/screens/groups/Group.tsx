import { Link, useParams } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { useAccount, useGroups, useMembers, useUsageKeys } from "../../app/queries";
import { Button } from "../../components/Button";
import { useMay } from "../../session/may";
import { Absent, Badge, Empty, Failure, PageHead, Spinner } from "../../components/elements";
import { usersOf } from "../pkps/uses";
import { EditPkps, ListAction, RemoveGroup, RenameGroup } from "./GroupDialogs";
import { MaySign } from "./MaySign";
import { Matrix } from "./Matrix";

type Open = "rename" | "remove" | "pkps" | "action" | undefined;

export function Group(): ReactNode {
  const { group: id } = useParams({ from: "/groups/$group" });
  const groups = useGroups();
  const { data: members, error } = useMembers(id);
  const [open, setOpen] = useState<Open>();
  const close = (): void => setOpen(undefined);
  const group = groups.items.find((one) => one.id === id);
  if (group === undefined)
    return (
      <Absent from={groups}>
        <Gone />
      </Absent>
    );
  return (
    <>
      <Link to="/groups">All groups</Link>
      <PageHead title={group.name || `Group ${id}`} about={group.description}>
        <HeadButtons onOpen={setOpen} />
      </PageHead>
      <Failure error={error} />
      {members === undefined ? (
        error === null && <Spinner />
      ) : (
        <Matrix group={group} members={members} onOpen={setOpen} />
      )}
      {members !== undefined && <MaySign members={members} />}
      <WhoMayRun groupId={id} />
      {open === "rename" && <RenameGroup group={group} onClose={close} />}
      {open === "remove" && <RemoveGroup group={group} onClose={close} />}
      {open === "pkps" && members !== undefined && <EditPkps group={group} members={members} onClose={close} />}
      {open === "action" && members !== undefined && <ListAction group={group} members={members} onClose={close} />}
    </>
  );
}

function HeadButtons({ onOpen }: { readonly onOpen: (open: Open) => void }): ReactNode {
  const may = useMay();
  return (
    <>
      {may.all && <Button onPress={() => onOpen("rename")}>Rename</Button>}
      {may.deleteGroups && (
        <Button variant="danger" onPress={() => onOpen("remove")}>
          Remove group
        </Button>
      )}
    </>
  );
}

function Gone(): ReactNode {
  return (
    <>
      <PageHead title="Group" />
      <Empty title="No such group">
        <p>It was removed, or never was in this account.</p>
      </Empty>
    </>
  );
}

function WhoMayRun({ groupId }: { readonly groupId: string }): ReactNode {
  const { data: account } = useAccount();
  const keys = useUsageKeys();
  const who = usersOf(groupId, keys.items, account.managed ? { id: account.id, name: "the account key" } : undefined);
  return (
    <section className="stack" aria-label="Who may run in it">
      <h2>Who may run in it</h2>
      <ul className="row">
        {who.map(({ id, name, key }) => (
          <li key={id}>
            <Badge kind={key === undefined ? "neutral" : "success"}>{name}</Badge>
          </li>
        ))}
      </ul>
      <Absent from={keys}>
        {who.length === 0 && <p className="soft">No key yet. Give one the permission when you create it.</p>}
      </Absent>
    </section>
  );
}
