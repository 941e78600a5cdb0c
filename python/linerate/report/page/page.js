"use strict";
// On a narrow screen each row of a wide table becomes a card, whose cells name their columns.
const FEW_COLUMNS = 4;
const LONGER_TEXT = 12;
const LONG_TEXT = 28;
for (const table of document.querySelectorAll("table")) {
  const heads = table.tHead ? [...table.tHead.rows[0].cells].map((head) => head.textContent) : [];
  if (heads.length <= FEW_COLUMNS) continue;
  table.classList.add("cards");
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, column) => {
      cell.dataset.label = heads[column];
      const length = cell.textContent.trim().length;
      cell.classList.toggle("longer", length > LONGER_TEXT && length <= LONG_TEXT);
      cell.classList.toggle("long", length > LONG_TEXT);
      cell.classList.toggle("blank", length === 0);
    });
  }
}
for (const table of document.querySelectorAll("table.sortable")) {
  table.tHead.addEventListener("click", (event) => {
    const head = event.target.closest("th");
    if (!head) return;
    const column = head.cellIndex;
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = (row) => row.cells[column].textContent.replaceAll(",", "");
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      const both = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
      return (both ? x - y : x.localeCompare(y, undefined, { numeric: true })) * (up ? 1 : -1);
    });
    table.tBodies[0].append(...rows);
  });
}
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details.step")) part.open = true;
});
