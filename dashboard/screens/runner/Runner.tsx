import type { ReactNode } from "react";
import { PageHead } from "../../parts/bits";
export function Runner(): ReactNode {
  return <PageHead title="Runner" />;
}
