/**
 * Drives a page by its keyboard alone: moves with Tab, as a user without a mouse does, and checks that the focus of
 * each used control is visible.
 */
import { expect } from "chai";
import type { Locator, Page } from "playwright-core";

/** More than the tab stops of the longest screen. */
const MAX_STOPS = 120;
const AROUND_PX = 6;
const WHAT_HAS_THE_FOCUS = `(() => {
  const { tagName, textContent } = document.activeElement ?? {};
  return tagName + " " + (document.activeElement?.getAttribute("aria-label") ?? textContent ?? "").slice(0, 40).trim();
})()`;

/** The members of a page's elements that these tests use: the tests are compiled without the browser's types. */
interface Focusable {
  readonly isConnected: boolean;
  blur(): void;
  focus(options: { preventScroll: boolean }): void;
}
interface List {
  readonly options: ArrayLike<{ readonly text: string }>;
  readonly selectedIndex: number;
}

export class Keyboard {
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  /** Presses Tab until this control has the focus, which must be visible. */
  async to(control: Locator): Promise<void> {
    await control.waitFor({ state: "attached" });
    const passed: string[] = [];
    while (!(await this.#has(control))) {
      if (passed.length >= MAX_STOPS) expect.fail(`Tab never reaches ${control}; it reaches ${passed.join(", ")}`);
      await this.#page.keyboard.press("Tab");
      passed.push(String(await this.#page.evaluate(WHAT_HAS_THE_FOCUS)));
    }
    await this.#seen(control);
  }

  /** Moves to the control and presses the key. */
  async press(control: Locator, key: "Enter" | "Space" | "ArrowRight" | "ArrowLeft"): Promise<void> {
    await this.to(control);
    await this.#page.keyboard.press(key);
  }

  /** Moves to the field and replaces its content. */
  async type(field: Locator, text: string): Promise<void> {
    await this.to(field);
    await this.#page.keyboard.press("ControlOrMeta+a");
    await this.#page.keyboard.type(text);
  }

  /** Chooses from a closed list by the arrow keys. */
  async choose(list: Locator, option: string): Promise<void> {
    await this.to(list);
    const { options, selected } = await list.evaluate((element) => {
      const { options: all, selectedIndex } = element as unknown as List;
      return { options: Array.from(all, ({ text }) => text), selected: selectedIndex };
    });
    const steps = options.indexOf(option) - selected;
    for (let step = 0; step < Math.abs(steps); step += 1)
      await this.#page.keyboard.press(steps > 0 ? "ArrowDown" : "ArrowUp");
    const chosen = await list.evaluate((element) => {
      const { options: all, selectedIndex } = element as unknown as List;
      return all[selectedIndex]?.text;
    });
    expect(chosen).to.equal(option);
  }

  #has = (control: Locator): Promise<boolean> =>
    control.evaluate((element) => element === element.ownerDocument.activeElement).catch(() => false);

  /** The control and its surroundings look different without the focus. */
  async #seen(control: Locator): Promise<void> {
    const box = await control.boundingBox();
    const view = this.#page.viewportSize();
    if (box === null || view === null) return expect.fail(`${control} has the focus and is not shown`);
    const clip = {
      x: Math.max(0, box.x - AROUND_PX),
      y: Math.max(0, box.y - AROUND_PX),
      width: Math.min(view.width, box.width + 2 * AROUND_PX),
      height: Math.min(view.height, box.height + 2 * AROUND_PX),
    };
    const look = (): Promise<Buffer> => this.#page.screenshot({ clip, animations: "disabled" });
    const focused = await look();
    const stays = await control.evaluate((element) => {
      const plain = element as unknown as Focusable;
      plain.blur();
      return plain.isConnected;
    });
    const without = await look();
    await control.evaluate((element) => (element as unknown as Focusable).focus({ preventScroll: true }));
    expect(stays && !focused.equals(without), `one sees that ${control} has the focus`).to.equal(true);
  }
}
