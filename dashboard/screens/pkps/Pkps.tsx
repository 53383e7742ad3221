import type { ReactNode } from "react";
import { PageHead } from "../../parts/bits";
export function Pkps(): ReactNode {
  return <PageHead title="Pkps" />;
}
