import { Component, type ReactNode } from "react";
import { Notice } from "../components/elements";
import { wordsOf } from "../components/failures";

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
      <Notice kind="error">
        This screen could not be shown. {wordsOf(error)} Choose another, or load the page again.
      </Notice>
    );
  }
}
