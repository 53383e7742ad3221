import { Component, type ReactNode } from "react";
import { Notice } from "./elements";
import { wordsOf } from "./failures";

interface Props {
  readonly what?: string;
  readonly className?: string;
  readonly children: ReactNode;
}

/** Contains the failure of a screen, or another part, that does not render or load; the others keep working. */
export class ScreenBoundary extends Component<Props, { readonly error?: unknown }> {
  override state: { readonly error?: unknown } = {};

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    const { what, className, children } = this.props;
    if (error === undefined) return children;
    return (
      <div className={className}>
        <Notice kind="error">
          {what ?? "This screen"} could not be shown. {wordsOf(error)}{" "}
          {what === undefined ? "Choose another, or load the page again." : "Load the page again."}
        </Notice>
      </div>
    );
  }
}
