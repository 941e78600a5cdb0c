// A virtual SAN: its topology as a drawing, what its links carry, which paths are alive, and its cables.

import { bar, byId, bytes, count, element, mibS, percent, say, svg, table } from "/static/figures.js";
import { Cable } from "/static/cable.js";
import { fact } from "/static/run.js";

const LEAST_WIDTH = 1.5;
const WIDTH_OF_LOAD = 6;
const COLUMNS = [
  ["link", "text"], ["line", ""], ["state", "text state"], ["sent MB/s", "sent"], ["received MB/s", "received"],
  ["load", "text load"], ["queue at its port", "queue"], ["queue at the switch", "switch-queue"], ["drops", "drops"],
];

export class SanView {
  constructor() {
    this.cable = new Cable();
    this.reset();
  }

  reset() {
    this.known = null;
    this.figures = {};
    this.run = {};
    byId("san").hidden = true;
    this.cable.close();
  }

  /** The SAN is another one than before, or a cable or a fault of it has changed. */
  san(san) {
    const focused = document.activeElement?.closest("[data-link]")?.dataset.link;
    this.known = san;
    byId("san").hidden = false;
    byId("san-facts").replaceChildren(
      fact("topology", san.topology), fact("lab", san.lab), fact("fabric", san.fabric),
    );
    say("san-note", noteText(san));
    const faults = san.faults.map((one) => one.label);
    say("san-faults", faults.length ? `In force: ${faults.join("; ")}.` : "");
    for (const form of ["wide", "narrow"]) byId(`san-${form}`).replaceChildren(this.drawn(san.drawings[form]));
    this.showLinks();
    this.showPaths();
    this.showFigures();
    if (focused) this.focus(focused);
  }

  traffic({ links }) {
    this.figures = links;
    this.showFigures();
  }

  /** A lab that is down has no cables to pull, and its last figures are not those of now. */
  lab({ state }) {
    if (state === "up") return;
    this.cable.close();
    byId("san").hidden = true;
    this.known = null;
  }

  /** What the run beside it says of its paths is measured: it counts before what the cables say. */
  point({ paths }) {
    this.run = paths;
    if (this.known) this.showPaths();
  }

  drawn({ width, height, elements }) {
    const made = elements.map((one) => (one.tag === "path" && one.link ? this.link(one) : plain(one)));
    const label = `${this.known.topology}: ${this.known.description}`;
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label }, ...made);
  }

  link({ attributes, link }) {
    const hit = svg("path", { d: attributes.d, class: "hit" });
    const made = svg("g", { class: "cable", "data-link": link }, svg("title", {}, link), svg("path", attributes), hit);
    if (this.known.may_pull) {
      made.setAttribute("role", "button");
      made.setAttribute("tabindex", "0");
      made.addEventListener("click", () => this.ask(link));
      made.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        this.ask(link);
      });
    }
    return made;
  }

  ask(name) {
    const link = this.known?.links.find((one) => one.name === name);
    if (link) this.cable.ask(link, this.known.faults);
  }

  showLinks() {
    const offered = this.known.may_pull;
    const columns = offered ? [...COLUMNS, ["cable", "text"]] : COLUMNS;
    const rows = this.known.links.map((one) => {
      const cells = [one.name, one.rate, one.up ? "up" : "down", ...COLUMNS.slice(3).map(() => "-")];
      return { className: one.up ? "" : "bad", cells: offered ? [...cells, this.button(one)] : cells };
    });
    byId("links").replaceChildren(...table("Links", columns, rows));
    byId("links").querySelectorAll("tbody tr").forEach((row, number) => {
      row.dataset.link = this.known.links[number].name;
    });
  }

  button(link) {
    const made = element("button", "", link.up ? "pull" : "plug in");
    made.type = "button";
    made.addEventListener("click", () => this.ask(link.name));
    return made;
  }

  /** Rows and curves stay, so that a click that began on one of them ends there. */
  showFigures() {
    if (!this.known) return;
    for (const link of this.known.links) {
      const found = this.figures[link.name];
      for (const made of linked("#san-wide g, #san-narrow g", link.name)) showCurve(made, link, found);
      for (const made of linked("#san-wide text", link.name)) made.textContent = figuresText(link, found);
      for (const row of linked("#links tr", link.name)) showRow(row, found);
    }
  }

  showPaths() {
    const rows = this.known.paths.map(({ name, host, array, is_alive: isJoined }) => {
      const measured = this.run[name];
      const alive = measured ? measured.mib_s != null : isJoined;
      return {
        className: alive ? "" : "bad",
        cells: [host, array, `${alive ? "alive" : "dead"}${measured ? ` (${measured.state})` : ""}`],
      };
    });
    const columns = [["path from", "text"], ["to", "text"], ["state", "text state"]];
    byId("san-paths").replaceChildren(...(rows.length ? table("Paths", columns, rows) : []));
  }

  focus(name) {
    const buttons = linked("#links tr", name).map((row) => row.querySelector("button"));
    const curves = linked("#san-wide g, #san-narrow g", name).filter((made) => made.getClientRects().length);
    (buttons[0] ?? curves[0])?.focus();
  }
}

const linked = (selector, name) =>
  [...document.querySelectorAll(selector)].filter((made) => made.dataset.link === name);

function plain({ tag, attributes, text, link }) {
  const made = svg(tag, attributes, text);
  if (link) made.dataset.link = link;
  return made;
}

function showCurve(made, link, found) {
  const [title, line] = made.children;
  const share = Math.min(Math.max(found?.load_percent ?? 0, 0) / 100, 1);
  title.textContent = titleText(link, found);
  made.setAttribute("aria-label", title.textContent);
  line.style.strokeWidth = `${(LEAST_WIDTH + WIDTH_OF_LOAD * share).toFixed(1)}px`;
  line.classList.toggle("busy", Boolean(found) && link.up);
  line.classList.toggle("dropping", Boolean(found?.new_drops));
}

function showRow(row, found) {
  const cell = (name) => row.querySelector(`td.${name}`);
  if (!found) return;
  cell("sent").textContent = mibS(found.sent_mib_s);
  cell("received").textContent = mibS(found.received_mib_s);
  cell("load").replaceChildren(bar(found.load_percent / 100, `${percent(found.load_percent)}\u00a0%`));
  cell("queue").textContent = bytes(found.queue_bytes);
  cell("switch-queue").textContent = bytes(found.switch_queue_bytes);
  cell("drops").textContent = count(dropped(found));
}

const dropped = (found) => found.drops + found.switch_drops + found.lost;

/** The short line at a link: what the busier direction carries, what waits, and what was just dropped. */
function figuresText(link, found) {
  if (!link.up) return "down";
  if (!found) return "";
  const waits = (found.queue_bytes ?? 0) + (found.switch_queue_bytes ?? 0);
  const words = [`${mibS(Math.max(found.sent_mib_s, found.received_mib_s))} MB/s`, `${count(found.load_percent)} %`];
  if (found.new_drops) words.push(`${count(found.new_drops)} dropped`);
  else if (waits) words.push(`${bytes(waits)} queued`);
  return words.join(", ");
}

function titleText(link, found) {
  const head = `${link.name}, ${link.rate}, ${link.up ? "up" : "down"}`;
  if (!found) return head;
  return (
    `${head}: sent ${mibS(found.sent_mib_s)} MB/s, received ${mibS(found.received_mib_s)} MB/s, ` +
    `${percent(found.load_percent)} % of the line; queue ${bytes(found.queue_bytes)} at its port, ` +
    `${bytes(found.switch_queue_bytes)} at the switch; drops: ${count(found.drops)} at its port, ` +
    `${count(found.switch_drops)} at the switch, ${count(found.lost)} on the wire`
  );
}

function noteText({ recorded, may_pull: mayPull }) {
  const what = recorded
    ? `As run ${recorded} recorded it: means of its measured time, the deepest queue, and the drops of that time.`
    : "As it is now: figures of the last second, and all drops since the lab is up.";
  const how = mayPull ? " A click on a link pulls its cable or plugs it in, after a question." : "";
  return (
    `${what} A line is as wide as the busier direction of the link is loaded. ` +
    `Sent and received are seen from the host or the array, of a trunk from its first switch.${how}`
  );
}
