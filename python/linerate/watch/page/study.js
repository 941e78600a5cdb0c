// A study: how far it is, and its comparisons as they narrow from block to block.

import { byId, change, duration, element, mibS, ms, percent, rate, say, svg, table } from "/static/figures.js";

const WIDTH = 240;
const LINE = 5;
const MARGIN = 8;
const HISTORY_SHOWN = 6;

export class StudyView {
  get isShown() {
    return !byId("study").hidden;
  }

  reset() {
    byId("study").hidden = true;
  }

  study(study) {
    byId("study").hidden = false;
    say("study-title", study.title);
    say("study-reason", study.reason);
    this.showProgress(study);
    this.showBlocks(study.blocks);
    this.showComparisons(study);
    this.showTrouble(study);
  }

  showProgress(study) {
    const over = study.state !== "running";
    const left = study.left_most_s;
    byId("study-bar").value = study.state === "complete" ? 1 : study.spent_s / Math.max(study.spent_s + left, 1);
    byId("study-left").textContent = over ? study.state : `${nowText(study.now)}${leftText(study)}`;
  }

  showBlocks(blocks) {
    const items = blocks.map(({ block, done, planned }) => {
      const item = element("li", done >= planned ? "done" : done ? "begun" : "");
      item.append(element("b", "", `block ${block}`), element("span", "", `${done} of ${planned} runs`));
      return item;
    });
    byId("study-blocks").replaceChildren(...items);
  }

  showComparisons(study) {
    const { comparisons } = study;
    if (!comparisons.length) {
      byId("comparisons").replaceChildren();
      byId("comparisons-note").textContent = study.is_judged
        ? "The first comparisons appear when the first block is complete."
        : "This stage has no verdicts: the runs of all blocks are evaluated together, at its end.";
      return;
    }
    const last = Math.max(...comparisons.map((one) => one.blocks));
    const scales = scalesOf(comparisons);
    const ends = [...scales].map(([unit, [low, high]]) => `${change(low, "")} to ${change(high, unit)}`);
    byId("comparisons-note").textContent =
      `Each case against ${study.baseline}, after ${last} ${last === 1 ? "block" : "blocks"}. ` +
      `Lines are 95 % intervals: the lowest is the present one, those above it are of earlier blocks. ` +
      `The grey band is the margin, within which a difference does not matter. ` +
      `The drawings go from ${ends.join(", and from ")}.`;
    const columns = [
      ["workload", "text"], ["case", "text"], ["metric", "text"], ["baseline", ""], ["value", ""], ["change", ""],
      ["95 % interval", ""], ["", "wide drawn"], ["blocks", ""], ["verdict", "text verdict"],
    ];
    const rows = comparisons.map((one) => ({
      cells: [
        one.workload, one.case, one.metric, figure(one.baseline, one.unit), figure(one.value, one.unit),
        change(one.change, one.change_unit), intervalText(one), drawn(one, scales.get(one.change_unit)),
        String(one.blocks), one.verdict,
      ],
      className: tone(one),
    }));
    byId("comparisons").replaceChildren(...table("", columns, rows));
  }

  showTrouble(study) {
    const place = byId("study-trouble");
    place.replaceChildren();
    if (study.trouble.length) {
      const columns = [["run", "text"], ["state", "text"], ["reason", "text wide"]];
      const rows = study.trouble.map((one) => ({ cells: [one.run, one.state, one.reason] }));
      place.append(...table("Runs that do not count", columns, rows));
    }
    if (study.not_applicable.length) {
      const columns = [["case", "text"], ["SAN", "text"], ["reason", "text wide"]];
      const rows = study.not_applicable.map((one) => ({ cells: [one.case, one.san, one.reason] }));
      place.append(...table("Cases that are not applicable", columns, rows));
    }
  }
}

function nowText(now) {
  if (!now) return "";
  if (now.block == null) return `${now.case}; `;
  return `block ${now.block}, run ${now.number} of ${now.of}: ${now.case}, ${now.workload}; `;
}

function leftText({ left_least_s: least, left_most_s: most }) {
  if (Math.abs(most - least) < 1 || least < 1) return `${least < 1 && most >= 1 ? "at most" : "about"} ${duration(most)} left`;
  return `about ${duration(least)} to ${duration(most)} left`;
}

function figure(value, unit) {
  const write = { "IOPS": rate, "MB/s": mibS, "ms": ms, "%": percent }[unit] ?? ms;
  return `${write(value)} ${unit}`.trim();
}

function intervalText({ low, high, change_unit: unit }) {
  return low == null || high == null ? "-" : `${change(low, "")} to ${change(high, unit)}`;
}

/** Good or bad for the user where a change is certain and larger than the margin; colour repeats what the words say. */
function tone({ low, high, change: found, better, margin }) {
  if (low == null || high == null || (low <= 0 && high >= 0) || !better) return "";
  if (Math.abs(found) <= (margin ?? 0)) return "";
  return (low > 0) === (better > 0) ? "good" : "bad";
}

/** By unit, the range that the present intervals and the margin need. Wider intervals of earlier blocks are cut off. */
function scalesOf(comparisons) {
  const scales = new Map();
  for (const one of comparisons) {
    const room = 2 * (one.margin ?? 0);
    const [low, high] = scales.get(one.change_unit) ?? [-room, room];
    const values = [one.low, one.high, one.change].filter((value) => value != null);
    scales.set(one.change_unit, [Math.min(low, ...values), Math.max(high, ...values)]);
  }
  return scales;
}

function drawn(one, [least, most]) {
  const room = (most - least || 1) * 0.05;
  const place = (value) => {
    const share = (value - least + room) / (most - least + 2 * room || 1);
    return Math.min(Math.max(share, 0), 1) * WIDTH;
  };
  const history = one.history.filter((past) => past.low != null).slice(-HISTORY_SHOWN);
  const height = 2 * MARGIN + LINE * Math.max(history.length - 1, 0) + 4;
  const parts = [];
  if (one.margin) {
    const x = place(-one.margin);
    parts.push(svg("rect", { x, y: 0, width: place(one.margin) - x, height, class: "margin" }));
  }
  parts.push(svg("line", { x1: place(0), x2: place(0), y1: 0, y2: height, class: "zero" }));
  history.forEach((past, index) => {
    const y = MARGIN + LINE * index;
    const kind = index === history.length - 1 ? "present" : "past";
    parts.push(svg("line", { x1: place(past.low), x2: place(past.high), y1: y, y2: y, class: kind }));
  });
  const y = MARGIN + LINE * Math.max(history.length - 1, 0);
  parts.push(svg("circle", { cx: place(one.change), cy: y, r: 4, class: "estimate" }));
  const label = `${change(one.change, one.change_unit)}, 95 % interval ${intervalText(one)}`;
  const title = svg("title", {}, label);
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, role: "img", "aria-label": label }, title, ...parts);
}
