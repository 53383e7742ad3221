import type { ReactNode } from "react";
import { PageHead } from "../../parts/bits";
export function Credit(): ReactNode {
  return <PageHead title="Credit" />;
}
