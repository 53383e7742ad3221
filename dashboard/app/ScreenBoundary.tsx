import { Component, type ReactNode } from "react";
import { Notice } from "../parts/elements";
import { wordsOf } from "../parts/failures";

/** Contains the failure of a screen that does not render or load; the others keep working. */
export class ScreenBoundary extends Component<{ readonly children: ReactNode }, { readonly error?: unknown }> {
  override state: { readonly error?: unknown } = {};

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <Notice kind="bad">
        This screen could not be shown. {wordsOf(error)} Choose another, or load the page again.
      </Notice>
    );
  }
}
