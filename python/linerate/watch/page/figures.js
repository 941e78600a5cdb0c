// How figures are written, and the small pieces of the page that show them. Text goes into the page as text only.

const NOTHING = "-";

const grouped = (value, digits) =>
  value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

export const rate = (value) => (value == null ? NOTHING : grouped(value, value >= 100 ? 0 : 1));

export const mibS = (value) =>
  value == null ? NOTHING : grouped(value, value >= 1000 ? 0 : value >= 10 ? 1 : 2);

export const ms = (value) =>
  value == null ? NOTHING : grouped(value, value < 0.1 ? 4 : value < 10 ? 3 : value < 100 ? 2 : 1);

export const percent = (value) => (value == null ? NOTHING : grouped(value, 1));

export const count = (value) => (value == null ? NOTHING : grouped(value, 0));

/** A change with its sign, in its unit: "+5.2 %". */
export function change(value, unit) {
  if (value == null) return NOTHING;
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 1 ? 1 : 2;
  return `${value < 0 ? "-" : "+"}${grouped(Math.abs(value), digits)} ${unit}`.trim();
}

/** Bytes in a binary unit. */
export function bytes(value) {
  if (value == null) return NOTHING;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let power = 0;
  while (value >= 1024 && power < units.length - 1) {
    value /= 1024;
    power += 1;
  }
  return `${grouped(value, power === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${units[power]}`;
}

/** A time span: "45 s", "12 min", "3 h 05 min". */
export function duration(seconds) {
  if (seconds < 100) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 100) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

/** Seconds since a start: "0:07", "12:30", "1:02:03"; with tenths "0:07.5". */
export function clock(seconds, tenths = false) {
  if (tenths) {
    const rounded = Math.round(10 * seconds);
    return `${clock(Math.floor(rounded / 10))}.${rounded % 10}`;
  }
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 60) % 60, whole % 60].map((part) => String(part).padStart(2, "0"));
  const hours = Math.floor(whole / 3600);
  return hours ? `${hours}:${parts.join(":")}` : `${Number(parts[0])}:${parts[1]}`;
}

export const byId = (id) => document.getElementById(id);

/** An element with text or children in it. */
export function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children.filter((child) => child != null));
  return made;
}

/** Shows text in an element, or hides the element if there is none. */
export function say(id, text) {
  const place = byId(id);
  place.textContent = text;
  place.hidden = !text;
}

/** A number stays on one line with its per cent sign. */
const unbroken = (text) => text.replace(/(\d) %/g, "$1\u00a0%");

/**
 * A table that becomes a list of cards on a narrow screen.
 * Columns are [heading, kind]; kind "" is a number, "text" is text, "wide" takes a whole row of a card.
 */
export function table(heading, columns, rows) {
  const head = element("tr", "");
  for (const [name, kind] of columns) head.append(element("th", kind, name));
  const body = element("tbody", "");
  for (const row of rows) {
    const line = element("tr", row.className || "");
    row.cells.forEach((cell, index) => {
      const [name, kind] = columns[index];
      const made = element("td", kind, typeof cell === "string" ? unbroken(cell) : (cell ?? NOTHING));
      made.dataset.label = name;
      line.append(made);
    });
    if (row.click) {
      line.tabIndex = 0;
      line.addEventListener("click", row.click);
      line.addEventListener("keydown", (event) => event.key === "Enter" && row.click());
    }
    body.append(line);
  }
  const made = element("table", "", element("thead", "", head), body);
  return heading ? [element("h3", "", heading), made] : [made];
}

/** A bar that is filled to a share from 0 to 1. */
export function bar(share, label, className) {
  const fill = element("span", "fill");
  fill.style.width = `${100 * Math.min(Math.max(share, 0), 1)}%`;
  return element("span", "bar", element("span", `track ${className || ""}`, fill), element("span", "", label));
}

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with attributes. */
export function svg(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
