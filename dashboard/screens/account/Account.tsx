import { Link } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { useAccount } from "../../app/queries";
import { ChangeDialog, RenameDialog } from "../../changes/ChangeDialog";
import { freezeAccount, renameAccount, unfreezeAccount } from "../../changes/operations";
import { Button } from "../../components/Button";
import { Badge, Facts, Id, Notice, PageHead } from "../../components/elements";
import { Address } from "../../components/explorer";
import { useSession } from "../../session/context";
import type { Account as AccountItem } from "../../session/types";
import { Convert } from "./Convert";
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
      {open === "rename" && (
        <RenameDialog title="Rename the account" of={account} change={renameAccount} onClose={close} />
      )}
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

/** The emergency stop and its release. */
function Freeze({ account }: { readonly account: AccountItem }): ReactNode {
  /** What is confirmed: to end it where it was frozen when the dialog opened, whatever is read meanwhile. */
  const [ending, setEnding] = useState<boolean>();
  const { frozen } = account;
  return (
    <Task
      title={frozen ? "The account is frozen" : "Emergency stop"}
      about={
        frozen
          ? "No key runs anything and no usage key changes anything, until you end it."
          : "Stops every run of every key at once, and every change by usage keys. You remain able to change the " +
            "account, and you can end it at any time."
      }
    >
      <Button variant={frozen ? "primary" : "danger"} onPress={() => setEnding(frozen)}>
        {frozen ? "Unfreeze account" : "Freeze account"}
      </Button>
      {ending !== undefined && (
        <ChangeDialog
          onClose={() => setEnding(undefined)}
          title={ending ? "Unfreeze the account?" : "Freeze the account?"}
          about={
            ending
              ? "Keys work again, with what each of them may do."
              : "Your programs are refused from their next request on. PKPs, groups and keys stay as they are."
          }
          submit={ending ? "Unfreeze account" : "Freeze account"}
          danger={!ending}
          change={() => (ending ? unfreezeAccount() : freezeAccount())}
        />
      )}
    </Task>
  );
}

/** One operation on the whole account, with its explanation. */
function Task({
  title,
  about,
  children,
}: {
  readonly title: string;
  readonly about: ReactNode;
  readonly children?: ReactNode;
}): ReactNode {
  return (
    <section className="card task" aria-label={title}>
      <div className="grow stack-s">
        <h2>{title}</h2>
        <p className="soft">{about}</p>
      </div>
      {children}
    </section>
  );
}
