import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef, type ReactNode } from "react";

export interface ChartProps {
  readonly days: readonly string[];
  readonly values: readonly number[];
  /** Text alternative for screen readers. */
  readonly label: string;
  readonly format: (value: number) => string;
  /** Called with the day under the pointer. */
  readonly onPoint: (at: number | undefined) => void;
}

const HEIGHT = 150;
const GAP_PX = 8;
const CHARACTER_PX = 7;
/** Seconds. */
const HALF_A_DAY = 43_200;

/** Bars by day. Redrawn when the colours change, since a canvas does not follow style sheets. */
export function Chart({ days, values, label, format, onPoint }: ChartProps): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    let plot = draw(element, { days, values, format, onPoint });
    const again = (): void => {
      plot.destroy();
      plot = draw(element, { days, values, format, onPoint });
    };
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    const recoloured = new MutationObserver(again);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    resized.observe(element);
    recoloured.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    dark.addEventListener("change", again);
    return () => {
      resized.disconnect();
      recoloured.disconnect();
      dark.removeEventListener("change", again);
      plot.destroy();
    };
  }, [days, values, format, onPoint]);
  return <div className="chart" ref={place} role="img" aria-label={label} />;
}

function draw(element: HTMLElement, { days, values, format, onPoint }: Omit<ChartProps, "label">): uPlot {
  const colour = colourOf(element);
  const times = days.map((day) => Date.parse(`${day}T00:00:00Z`) / 1000);
  const axis = {
    stroke: colour("--ink-soft"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui",
    gap: 6,
  };
  return new uPlot(
    {
      width: element.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)] },
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      // Space for the full width of the first and the last bar.
      scales: {
        x: { range: (_plot, first, last) => [first - HALF_A_DAY, last + HALF_A_DAY] },
        y: { range: (_plot, _least, most) => [0, Math.max(most, 1)] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          values: (_plot, at) => at.map((one) => dayName(new Date(one * 1000))),
          space: 70,
          size: 22,
        },
        { ...axis, values: (_plot, at) => at.map(format), size: widthOf, space: 40 },
      ],
      series: [
        {},
        {
          fill: colour("--accent"),
          stroke: colour("--accent"),
          width: 0,
          points: { show: false },
          paths: uPlot.paths.bars?.({ size: [0.7, 24], radius: 0.2 }) ?? (() => null),
        },
      ],
    },
    [times, [...values]],
    element,
  );
}

/** As wide as the axis' longest label, so that the bars align with the heading. */
const widthOf = (_plot: uPlot, labels: readonly string[] | null): number =>
  GAP_PX + CHARACTER_PX * Math.max(1, ...(labels ?? []).map(({ length }) => length));

/** Usage days are UTC days. */
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
const dayName = (at: Date): string => DAY.format(at);

/** The computed value of a colour token: light-dark() is resolved only on an element that uses the colour. */
function colourOf(element: HTMLElement) {
  return (token: string): string => {
    const probe = document.createElement("span");
    probe.style.color = `var(${token})`;
    element.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
}
