import type { ReactNode } from "react";
import type { PrimaryType } from "../../protocol/typedDataShape";
import { Facts } from "../components/elements";
import { Address } from "../components/explorer";
import type { ChainConfig } from "../session/types";

interface Props {
  readonly type: PrimaryType;
  /** The wallet that signs. */
  readonly address: string;
  readonly config: ChainConfig;
}

/** Typed data that the wallet signs for the service, and no transaction: every field, as the wallet shows it. */
export function SignedRequest({ type, address, config }: Props): ReactNode {
  const { name, version, chainId } = config.typed_data_domain;
  return (
    <section className="stack-s" aria-label="What you sign">
      <h3>What you sign</h3>
      <Facts
        items={[
          ["Message", <code key="m">{type}</code>],
          ["address", <Address key="a" value={address} what="signer" chain={config} />],
          ["issuedAt", "the moment you sign; it is accepted for five minutes"],
          ["For", `${name}, version ${version}, chain ${chainId}`],
        ]}
      />
    </section>
  );
}
