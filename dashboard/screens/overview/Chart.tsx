import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef, type ReactNode } from "react";

export interface ChartProps {
  readonly days: readonly string[];
  readonly values: readonly number[];
  /** What is shown, for those who do not see it. */
  readonly label: string;
  readonly format: (value: number) => string;
}

const HEIGHT = 150;

/** Bars by day. Drawn again when the colours change, since a canvas knows no style sheet. */
export function Chart({ days, values, label, format }: ChartProps): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    let plot = draw(element, days, values, format);
    const again = (): void => {
      plot.destroy();
      plot = draw(element, days, values, format);
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
  }, [days, values, format]);
  return <div className="chart" ref={place} role="img" aria-label={label} />;
}

function draw(element: HTMLElement, days: readonly string[], values: readonly number[], format: ChartProps["format"]): uPlot {
  const colour = colourOf(element);
  const times = days.map((day) => Date.parse(`${day}T00:00:00Z`) / 1000);
  const axis = { stroke: colour("--ink-soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui", gap: 6 };
  return new uPlot(
    {
      width: element.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      scales: { y: { range: (_plot, _least, most) => [0, Math.max(most, 1)] } },
      axes: [
        {
          ...axis,
          grid: { show: false },
          values: (_plot, at) => at.map((one) => new Date(one * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" })),
          space: 70,
          size: 28,
        },
        { ...axis, values: (_plot, at) => at.map(format), size: 54, space: 40 },
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

/** A token as the browser computes it here and now: light-dark() is resolved by an element that wears the colour. */
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
