// A run: its steps, its charts over time, its events, and what speaks against it.

import { Charts } from "/static/charts.js";
import { byId, clock, count, duration, element, mibS, ms, percent, rate, say, table } from "/static/figures.js";

const MARKS_SHOWN = 200;
const CALM = new Set(["note", "step", "started", "ended"]);

const two = (value) => value.toFixed(value < 10 ? 2 : 1);

const CHARTS = {
  rate: {
    title: "I/O rate",
    unit: "IOPS",
    write: rate,
    series: [["iops", "all"], ["read_iops", "reads"]],
  },
  throughput: { title: "Throughput", unit: "MB/s", write: mibS, series: [["mib_s", "all"]] },
  response: {
    title: "Response time",
    unit: "ms, service time",
    write: ms,
    series: [["mean_ms", "mean"], ["p99_ms", "99th percentile"]],
  },
  intended: {
    title: "Response time from the intended start",
    unit: "ms, steps with a given rate",
    write: ms,
    series: [["response_mean_ms", "mean"], ["response_p99_ms", "99th percentile"]],
  },
  queue: { title: "Queue depth", unit: "I/Os in flight, mean", write: two, series: [["queue", "all volumes"]] },
  cpu: {
    title: "CPU of the load host",
    unit: "% of all CPUs",
    write: percent,
    top: 100,
    series: [["cpu_percent", "user and system"], ["cpu_system_percent", "system"], ["cpu_load_percent", "the load"]],
  },
};

export class RunView {
  constructor() {
    this.charts = new Charts(byId("run-charts"), "run");
    this.reset();
  }

  reset() {
    this.charts.clear();
    this.head = null;
    this.figures = new Map();
    this.marks = [];
    this.points = [];
    this.paths = [];
    this.chosen = null;
    for (const id of ["steps", "marks", "findings"]) byId(id).replaceChildren();
    byId("run").hidden = true;
  }

  /** `isPart`: the run is one of a study, and needs a heading of its own. */
  run(head, isPart) {
    this.head = head;
    byId("run").hidden = false;
    say("run-title", isPart ? `Run ${head.directory}` : "");
    say("run-reason", head.reason);
    byId("run-facts").replaceChildren(
      fact("directory", head.directory),
      fact("workload", head.workload),
      fact("started", new Date(head.started_at).toLocaleString("sv-SE")),
      fact("state", head.state),
      ...(head.stamp ? [fact("result", head.stamp)] : []),
    );
    this.showSteps();
    this.showFindings(head.findings);
  }

  progress({ done_s: done, left_s: left, left_of_step_s: leftOfStep }) {
    const total = done + (left ?? leftOfStep);
    const over = this.head && this.head.state !== "running";
    byId("run-bar").value = this.head?.state === "complete" ? 1 : total > 0 ? done / total : 0;
    const steps = this.head?.steps.length ?? 0;
    const of = this.head?.steps_planned ? ` of ${this.head.steps_planned}` : "";
    const rest = left != null ? `about ${duration(left)} left` : `about ${duration(leftOfStep)} left of this step`;
    byId("run-left").textContent = over ? this.head.state : `step ${steps}${of}, ${rest}`;
  }

  step(figures) {
    this.figures.set(figures.step, figures);
    this.showSteps();
  }

  point(point) {
    this.declare(point);
    const last = this.points.at(-1);
    const start = point.t - point.s;
    if (last && (last.step !== point.step || start - last.t > 1.5 * point.s)) this.charts.gap((last.t + start) / 2);
    this.points.push(point);
    const open = this.head?.steps[point.step]?.is_open;
    this.charts.add(point.t, (chart, series) => {
      if (chart === "paths") return point.paths[series]?.mib_s ?? null;
      if (chart === "path_times") return point.paths[series]?.ms ?? null;
      if (chart === "intended" && !open) return null;
      return point[series];
    }, start);
    if (point.warmup) this.charts.shade(this.warmups());
  }

  mark(mark) {
    this.marks.push(mark);
    this.charts.mark(this.marks.map(({ t, kind }) => ({ t, bad: !CALM.has(kind) })));
    const shown = this.marks.slice(-MARKS_SHOWN).reverse();
    const left = this.marks.length - shown.length;
    byId("marks").replaceChildren(
      ...table(
        `Events, newest first${left ? `; ${left} earlier ones are in events.jsonl` : ""}`,
        [["time", ""], ["step", "text"], ["what", "text"], ["volume", "text"], ["path", "text"], ["message", "text wide"]],
        shown.map((one) => ({
          cells: [clock(one.t), one.step, one.kind, one.volume, one.path, one.message],
        })),
      ),
    );
  }

  declare(point) {
    for (const [key, chart] of Object.entries(CHARTS)) this.charts.declare(key, chart);
    const names = Object.keys(point.paths);
    const fresh = names.filter((name) => !this.paths.includes(name));
    if (fresh.length === 0) return;
    this.paths.push(...fresh);
    const series = this.paths.map((name) => [name, name]);
    this.charts.declare("paths", { title: "Throughput by path", unit: "MB/s", write: mibS, series });
    this.charts.declare("path_times", { title: "Response time by path", unit: "ms, mean", write: ms, series });
  }

  warmups() {
    const steps = new Map();
    for (const point of this.points) {
      if (!point.warmup) continue;
      const known = steps.get(point.step);
      steps.set(point.step, [known ? known[0] : point.t - point.s, point.t]);
    }
    return [...steps.values()];
  }

  showSteps() {
    if (!this.head) return;
    const columns = [
      ["step", "text"], ["asked", "text"], ["IOPS", ""], ["MB/s", ""], ["mean ms", ""], ["p99 ms", ""],
      ["from intended start, ms", ""], ["queue depth", ""], ["errors", ""], ["measured", ""], ["state", "text"],
    ];
    const rows = this.head.steps.map((step, number) => {
      const found = this.figures.get(number) ?? {};
      return {
        className: this.chosen === number ? "chosen" : "",
        click: () => this.choose(number),
        cells: [
          step.label, step.requested_rate, rate(found.iops), mibS(found.mib_s), ms(found.mean_ms), ms(found.p99_ms),
          ms(found.response_ms), found.queue == null ? "-" : two(found.queue), count(found.errors),
          found.seconds == null ? "-" : duration(found.seconds), step.reason ? `${step.state}: ${step.reason}` : step.state,
        ],
      };
    });
    byId("steps").replaceChildren(...table("", columns, rows));
  }

  choose(number) {
    this.chosen = this.chosen === number ? null : number;
    const times = this.points.filter((point) => point.step === number);
    const range = times.length ? [times[0].t - times[0].s, times.at(-1).t] : null;
    this.charts.zoom(this.chosen === null ? null : range);
    this.showSteps();
  }

  showFindings(findings) {
    const groups = new Map();
    for (const one of findings) {
      const key = [one.severity, one.reason, one.advice].join("\n");
      groups.set(key, { ...one, steps: [...(groups.get(key)?.steps ?? []), one.step].filter(Boolean) });
    }
    const rows = [...groups.values()].map((one) => ({
      cells: [one.severity, one.reason, one.advice, stepsText(one.steps)],
    }));
    const columns = [["severity", "text"], ["finding", "text wide"], ["what to do", "text wide"], ["steps", "text wide"]];
    byId("findings").replaceChildren(...(rows.length ? table("Check of the result", columns, rows) : []));
  }
}

const stepsText = (steps) =>
  steps.length > 4 ? `${steps.slice(0, 3).join(", ")} and ${steps.length - 3} more` : steps.join(", ");

export const fact = (name, value) => element("span", "", `${name} `, element("b", "", value));
