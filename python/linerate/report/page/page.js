"use strict";
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
