// Charts over time. Each keeps its own series; all charts of one group share the time axis and the cursor.

import { clock, element } from "/static/figures.js";

const HEIGHT_PX = 190;
const COLOURS = ["--line1", "--line2", "--line3", "--line4", "--line5", "--line6", "--line7", "--line8"];
const DASHES = [[], [6, 4], [2, 3]];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A group of charts below each other or side by side. */
export class Charts {
  /** `place` is an element, `group` the name by which the cursors are joined. */
  constructor(place, group) {
    this.place = place;
    this.group = group;
    this.charts = new Map();
    this.times = [];
    this.start = null;
    this.range = null;
    this.bands = [];
    this.marks = [];
    this.pending = false;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.rebuild());
  }

  /** Declares a chart: title, unit, how its values are written, and its series as [key, label]. */
  declare(key, { title, unit, write, series, top }) {
    const known = this.charts.get(key);
    if (known && known.series.length === series.length) return;
    const figure = known ? known.figure : element("figure", "");
    figure.replaceChildren(element("figcaption", "", title, element("span", "", unit)));
    if (!known) this.place.append(figure);
    known?.plot?.destroy();
    const values = series.map(([name], index) => known?.values[index] ?? this.times.map(() => null));
    this.charts.set(key, { figure, title, unit, write, series, top, values, plot: null });
    this.later();
  }

  /** Forgets everything. */
  clear() {
    for (const chart of this.charts.values()) chart.plot?.destroy();
    this.charts.clear();
    this.place.replaceChildren();
    this.times = [];
    this.marks = [];
    this.bands = [];
    this.start = null;
    this.range = null;
  }

  /** Adds a moment. `valueOf` gives the value of a series, or null for a gap; `start` is where its time began. */
  add(time, valueOf, start = time) {
    this.start ??= start;
    this.times.push(time);
    for (const [key, chart] of this.charts) {
      chart.series.forEach(([name], index) => chart.values[index].push(valueOf ? valueOf(key, name) : null));
    }
    this.later();
  }

  /** A gap in every series: nothing was measured there. */
  gap(time) {
    this.add(time, null);
  }

  /** Shows only the time between two moments; null: all of it. */
  zoom(range) {
    this.range = range;
    this.later();
  }

  /** Time spans that are shaded: [from, to]. */
  shade(bands) {
    this.bands = bands;
    this.later();
  }

  /** Moments that are marked: {t, bad}. */
  mark(marks) {
    this.marks = marks;
    this.later();
  }

  later() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  draw() {
    for (const chart of this.charts.values()) {
      const data = [this.times, ...chart.values];
      const has = chart.values.some((values) => values.some((value) => value != null));
      chart.figure.hidden = !has;
      if (!has) continue;
      if (!chart.plot) chart.plot = this.plotted(chart, data);
      else chart.plot.setData(data, false);
      const [from, to] = this.range ?? [this.start, this.times.at(-1)];
      chart.plot.setScale("x", { min: from, max: Math.max(to, from + 1) });
      const { plot } = chart;
      // After the plot has drawn, which would empty the legend again.
      queueMicrotask(() => plot.cursor.idx == null && plot.setLegend({ idx: this.lastShown(to) }, false));
    }
  }

  /** The last moment at or before a time: its values are in the legend while the cursor is elsewhere. */
  lastShown(time) {
    let index = this.times.length - 1;
    while (index > 0 && this.times[index] > time) index -= 1;
    return index;
  }

  rebuild() {
    for (const chart of this.charts.values()) {
      chart.plot?.destroy();
      chart.plot = null;
    }
    this.later();
  }

  resize() {
    for (const chart of this.charts.values()) {
      chart.plot?.setSize({ width: chart.figure.clientWidth, height: HEIGHT_PX });
    }
  }

  plotted(chart, data) {
    const axis = {
      stroke: colour("--muted"),
      grid: { stroke: colour("--grid"), width: 1 },
      ticks: { stroke: colour("--grid"), width: 1, size: 4 },
      font: "12px system-ui, sans-serif",
    };
    const options = {
      width: chart.figure.clientWidth || 320,
      height: HEIGHT_PX,
      cursor: { sync: { key: this.group }, drag: { x: false, y: false } },
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, chart.top ?? ((high || 1) * 1.08)] } },
      axes: [
        { ...axis, size: 30, values: (_, ticks, _axis, _space, step) => ticks.map((tick) => clock(tick, step < 1)), incrs: STEPS_S, space: 60 },
        { ...axis, size: 62, values: (_, ticks) => ticks.map(short) },
      ],
      series: [
        { label: "time", value: (_, time) => (time == null ? "-" : clock(time, true)) },
        ...chart.series.map(([, label], index) => ({
          label,
          stroke: colour(COLOURS[index % COLOURS.length]),
          dash: DASHES[Math.floor(index / COLOURS.length) % DASHES.length],
          width: 1.6,
          points: { show: data[0].length < 40, size: 4 },
          spanGaps: false,
          value: (_, value) => (value == null ? "-" : chart.write(value)),
        })),
      ],
      legend: { live: true },
      hooks: { drawClear: [(plot) => this.drawBands(plot)], draw: [(plot) => this.drawMarks(plot)] },
    };
    return new uPlot(options, data, chart.figure);
  }

  drawBands(plot) {
    plot.ctx.save();
    plot.ctx.fillStyle = colour("--band");
    for (const [from, to] of this.bands) {
      const left = Math.max(plot.valToPos(from, "x", true), plot.bbox.left);
      const right = Math.min(plot.valToPos(to, "x", true), plot.bbox.left + plot.bbox.width);
      if (right > left) plot.ctx.fillRect(left, plot.bbox.top, right - left, plot.bbox.height);
    }
    plot.ctx.restore();
  }

  drawMarks(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.setLineDash([4, 3]);
    ctx.lineWidth = devicePixelRatio;
    for (const mark of this.marks) {
      const x = plot.valToPos(mark.t, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.strokeStyle = colour(mark.bad ? "--bad" : "--muted");
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }
}

const STEPS_S = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** A tick of a vertical axis. */
function short(value) {
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(4))} M`;
  if (value >= 1e4) return `${Number((value / 1e3).toPrecision(4))} k`;
  return String(Number(value.toPrecision(4)));
}
