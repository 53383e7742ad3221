import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { javascript, javascriptLanguage } from "@codemirror/lang-javascript";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { linter, lintKeymap } from "@codemirror/lint";
import { EditorState, type Extension, type Transaction } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef, type ReactNode } from "react";
import { styleNonce } from "../../app/nonce";
import { ABILITIES, GLOBALS, type Ability } from "./globals";

interface Props {
  readonly label: string;
  readonly language: "javascript" | "json";
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** A code editor in which Tab moves the focus, as in any field. */
export function Editor({ label, language, value, onChange }: Props): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const changed = useRef(onChange);
  changed.current = onChange;
  const first = useRef(value);

  useEffect(() => {
    if (place.current === null) return;
    const listening = EditorView.updateListener.of(
      (update) => update.docChanged && changed.current(update.state.doc.toString()),
    );
    const state = EditorState.create({
      doc: first.current,
      extensions: [...shared(label), listening, language === "json" ? forJson : forJavascript],
    });
    view.current = new EditorView({ state, parent: place.current });
    return () => view.current?.destroy();
  }, [label, language]);

  useEffect(() => {
    const current = view.current;
    if (current !== undefined && current.state.doc.toString() !== value)
      current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: value } });
  }, [value]);

  return <div className={`editor ${language}`} ref={place} />;
}

const forJson: Extension = [json(), linter(jsonParseLinter())];
const forJavascript: Extension = [javascript(), javascriptLanguage.data.of({ autocomplete: complete })];

const option =
  (type: string) =>
  ({ name, detail, info }: Ability) => ({ label: name, detail, info, type });

function complete(context: CompletionContext): CompletionResult | null {
  const member = context.matchBefore(/\b(Actions|LitActions)\.\w*$/);
  if (member !== null)
    return {
      from: member.from + member.text.indexOf(".") + 1,
      options: ABILITIES.map(option("function")),
      validFor: /^\w*$/,
    };
  const word = context.matchBefore(/\b\w+$/);
  if (word === null && !context.explicit) return null;
  return { from: word?.from ?? context.pos, options: GLOBALS.map(option("variable")), validFor: /^\w*$/ };
}

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.function(tags.variableName), tags.propertyName], color: "var(--code-name)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
]);

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--ink)", fontSize: "var(--text-s)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-code)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--ink)", padding: "var(--space-3) 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--ink-soft)", border: "0" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "var(--accent-soft)",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
    borderRadius: "var(--radius-s)",
  },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "var(--ink-soft)" },
});

/**
 * Applies replacing selected text as one document change. The browser's default would copy the old text's colours as
 * style attributes, which the page's CSP refuses. Uses the document's selection: the editor's own may lag behind it.
 */
const replacedAsOneChange = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const selection = document.getSelection();
    if (event.inputType !== "insertText" || event.data === null || event.isComposing || selection?.type !== "Range")
      return false;
    const range = selection.getRangeAt(0);
    event.preventDefault();
    replace(
      view,
      view.posAtDOM(range.startContainer, range.startOffset),
      view.posAtDOM(range.endContainer, range.endOffset),
      event.data,
    );
    return true;
  },
});

/** Runs input handlers first, as for typed text: one of them wraps a selection in a typed bracket. */
function replace(view: EditorView, from: number, to: number, text: string): void {
  const insert = view.state.toText(text);
  const change = (): Transaction =>
    view.state.update({
      changes: { from, to, insert },
      selection: { anchor: from + insert.length },
      userEvent: "input.type",
      scrollIntoView: true,
    });
  const handled = view.state.facet(EditorView.inputHandler).some((handler) => handler(view, from, to, text, change));
  if (!handled) view.dispatch(change());
}

const shared = (label: string): Extension[] => [
  EditorView.cspNonce.of(styleNonce),
  EditorView.contentAttributes.of({ "aria-label": label }),
  replacedAsOneChange,
  EditorView.lineWrapping,
  lineNumbers(),
  history(),
  drawSelection(),
  indentOnInput(),
  bracketMatching(),
  closeBrackets(),
  autocompletion(),
  syntaxHighlighting(colours),
  theme,
  keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
];
