import type { ReactNode } from "react";
import { PageHead } from "../../parts/bits";
export function Pkp(): ReactNode {
  return <PageHead title="Pkp" />;
}
