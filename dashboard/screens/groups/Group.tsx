import type { ReactNode } from "react";
import { PageHead } from "../../parts/bits";
export function Group(): ReactNode {
  return <PageHead title="Group" />;
}
