import { Link } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { useAccount } from "../../app/queries";
import { useChanges } from "../../changes/ChangesProvider";
import { renameAccount } from "../../changes/operations";
import { Button } from "../../components/Button";
import { FormDialog } from "../../components/Dialog";
import { Badge, Facts, Id, Notice, PageHead } from "../../components/elements";
import { Address } from "../../components/explorer";
import { StringsFields, type Strings } from "../../components/Field";
import { useSession } from "../../session/context";
import type { Account as AccountItem } from "../../session/types";
import { Convert } from "./Convert";
import { Freeze } from "./Freeze";
import { Task } from "./Task";
import { Transfer } from "./Transfer";

type Open = "rename" | "convert" | "transfer" | undefined;

export function Account(): ReactNode {
  const session = useSession();
  const { data: account } = useAccount();
  const [open, setOpen] = useState<Open>();
  const close = (): void => setOpen(undefined);
  return (
    <>
      <PageHead title="Account" about="Name and owner of the account, and operations on the whole account.">
        {session.isOwner && <Button onPress={() => setOpen("rename")}>Rename</Button>}
      </PageHead>
      <AccountFacts account={account} />
      {!session.isOwner && <Notice>You are signed in with a usage key. Only the owner can change the account.</Notice>}
      {session.isOwner && <Freeze account={account} />}
      {session.isOwner && account.managed && (
        <Task
          title="Convert to ChainSecured"
          about={
            "Your wallet becomes the owner, and only it can change the account from then on. The account key stops " +
            "working permanently."
          }
        >
          <Button onPress={() => setOpen("convert")}>Convert to ChainSecured</Button>
        </Task>
      )}
      {session.isOwner && account.managed && (
        <Task
          title="Renew the account key"
          about={
            "The account’s id is the hash of its key, so the key cannot be replaced. Give programs usage keys, " +
            "which can be revoked and made anew. If others may know the account key, freeze the account and " +
            "convert it: the key ends, everything else stays."
          }
        >
          <Link className="button" to="/usage-keys">
            Usage keys
          </Link>
        </Task>
      )}
      {session.isOwner && (
        <Task
          title="Transfer the account to another owner"
          about="Another wallet, a Safe or a contract becomes the owner. Your own rights end with the same transaction."
        >
          <Button variant="danger" onPress={() => setOpen("transfer")}>
            Transfer ownership
          </Button>
        </Task>
      )}
      {session.kind === "wallet" && (
        <Task
          title="Changes for a multisig"
          about={
            "Choose “Collect” whenever a change is reviewed. The collected changes can be sent as one transaction, " +
            "or saved as one file for Safe's Transaction Builder."
          }
        />
      )}
      {open === "rename" && <Rename onClose={close} />}
      {open === "convert" && session.kind === "key" && <Convert session={session} onClose={close} />}
      {open === "transfer" && <Transfer onClose={close} />}
    </>
  );
}

function AccountFacts({ account }: { readonly account: AccountItem }): ReactNode {
  const { config } = useSession();
  return (
    <section className="card">
      <Facts
        items={[
          ["Name", account.name || "without a name"],
          ["Description", account.description || "–"],
          ["Mode", <Badge key="m">{account.managed ? "API mode" : "ChainSecured"}</Badge>],
          ["Account id", <Id key="i" value={account.id} what="account id" />],
          ["Owner", <Address key="o" whole value={account.owner} what="owner" chain={config} />],
          ["Contract", <Address key="c" value={config.contract_address} what="contract" chain={config} />],
        ]}
      />
    </section>
  );
}

function Rename({ onClose }: { readonly onClose: () => void }): ReactNode {
  const { perform } = useChanges();
  const { data } = useAccount();
  const [{ name, description }, setStrings] = useState<Strings>(data);
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Rename the account"
      submit="Save"
      onSubmit={async () => (await perform(renameAccount({ name, description }))).state !== "cancelled"}
    >
      <StringsFields value={{ name, description }} onChange={setStrings} />
    </FormDialog>
  );
}
