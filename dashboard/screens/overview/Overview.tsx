import type { ReactNode } from "react";
import { PageHead } from "../../parts/bits";
export function Overview(): ReactNode {
  return <PageHead title="Overview" />;
}
