import type { ReactNode } from "react";
import { PageHead } from "../../parts/bits";
export function Actions(): ReactNode {
  return <PageHead title="Actions" />;
}
