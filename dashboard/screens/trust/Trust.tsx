import type { ReactNode } from "react";
import { PageHead } from "../../parts/bits";
export function Trust(): ReactNode {
  return <PageHead title="Trust" />;
}
