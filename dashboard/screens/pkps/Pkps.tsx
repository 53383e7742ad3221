import { Link } from "@tanstack/react-router";
import { useMemo, useState, type ReactNode } from "react";
import { usePkps, type Pkp } from "../../app/queries";
import { Button } from "../../components/Button";
import { useMay } from "../../session/may";
import { DataTable, DESCRIPTION, numberColumn, type Column } from "../../components/DataTable";
import { PageHead } from "../../components/elements";
import { Address } from "../../components/explorer";
import { useSession } from "../../session/context";
import type { ChainConfig } from "../../session/types";
import { CreatePkp } from "./CreatePkp";

export function Pkps(): ReactNode {
  const { config } = useSession();
  const pkps = usePkps();
  const may = useMay();
  const [creating, setCreating] = useState(false);
  const columns = useMemo(() => columnsOf(config), [config]);
  return (
    <>
      <PageHead
        title="PKPs"
        about="Key pairs of your account. Their private keys stay in the TEE; your actions can sign with them."
      >
        {may.createPkps && (
          <Button variant="primary" onPress={() => setCreating(true)}>
            Create PKP
          </Button>
        )}
      </PageHead>
      <DataTable
        label="PKPs"
        unit={["PKP", "PKPs"]}
        from={pkps}
        rows={pkps.items}
        total={pkps.total}
        none={[
          "No PKPs yet",
          "A PKP is a wallet without a private key to guard. Make one, then say in a group which code may sign " +
            "with it.",
        ]}
        columns={columns}
        idOf={({ id }) => id}
        textOf={(pkp) => `${pkp.name} ${pkp.description} ${pkp.wallet_address}`}
      />
      {creating && <CreatePkp onClose={() => setCreating(false)} />}
    </>
  );
}

const columnsOf = (chain: ChainConfig): readonly Column<Pkp>[] => [
  {
    title: "Name",
    width: "minmax(10rem, 1.4fr)",
    cell: ({ wallet_address, name }) => (
      <Link className="name" to="/pkps/$pkp" params={{ pkp: wallet_address }}>
        {name || "Without a name"}
      </Link>
    ),
    by: ({ name }) => name,
  },
  {
    title: "Address",
    width: "minmax(11rem, 1fr)",
    cell: ({ wallet_address: address }) => <Address value={address} what="address" chain={chain} />,
    by: ({ wallet_address }) => wallet_address,
  },
  DESCRIPTION,
  numberColumn("Number", "5rem", ({ id }) => Number(id)),
];
