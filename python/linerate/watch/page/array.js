// An array: what its disks do, and the state of its RAID sets, pools and volumes.

import { Charts } from "/static/charts.js";
import { bar, byId, bytes, element, mibS, ms, percent, rate, table } from "/static/figures.js";
import { fact } from "/static/run.js";

const CHARTS = {
  throughput: {
    title: "Throughput of the disks",
    unit: "MB/s, all disks",
    write: mibS,
    series: [["read_mib_s", "read"], ["write_mib_s", "written"]],
  },
  rate: {
    title: "Operations of the disks",
    unit: "per second, all disks",
    write: rate,
    series: [["reads", "reads"], ["writes", "writes"]],
  },
  service: { title: "Service time of the disks", unit: "ms, mean", write: ms, series: [["service_ms", "mean"]] },
  busy: { title: "Disks at work", unit: "% of the time, mean", write: percent, top: 100, series: [["busy_percent", "mean"]] },
};

export class ArrayView {
  constructor() {
    this.charts = new Charts(byId("array-charts"), "array");
  }

  reset() {
    this.charts.clear();
    byId("array").hidden = true;
  }

  array(array) {
    byId("array").hidden = false;
    byId("array-facts").replaceChildren(
      fact("portals", array.portals.join(", ")),
      fact("targets", array.targets.join(", ")),
      fact("sessions", String(array.sessions.length)),
    );
    this.showSets(array.raid_sets);
    this.showPools(array.pools);
    this.showVolumes(array.volumes);
    this.showReplications(array.replications);
    this.showDisks(array.disks);
  }

  point(point) {
    for (const [key, chart] of Object.entries(CHARTS)) this.charts.declare(key, chart);
    this.charts.add(point.t, (_, series) => point[series]);
  }

  showSets(sets) {
    const columns = [["RAID set", "text"], ["level", "text"], ["state", "text"], ["capacity", ""], ["background work", "text wide"]];
    const rows = sets.map((one) => ({
      className: one.state === "optimal" ? "" : "bad",
      cells: [one.name, one.level, one.state, bytes(one.size_bytes), one.task ? task(one.task) : "none"],
    }));
    byId("raid-sets").replaceChildren(...(rows.length ? table("RAID sets", columns, rows) : []));
  }

  showPools(pools) {
    const columns = [["pool", "text"], ["capacity", ""], ["in use", "text wide"], ["shown by its volumes", ""]];
    const rows = pools.map((one) => ({
      className: one.warning ? "bad" : "",
      cells: [
        one.name,
        bytes(one.size_bytes),
        bar(one.used_bytes / (one.size_bytes || 1), bytes(one.used_bytes)),
        bytes(one.provisioned_bytes),
      ],
    }));
    byId("pools").replaceChildren(...(rows.length ? table("Pools", columns, rows) : []));
  }

  showVolumes(volumes) {
    const columns = [
      ["volume", "text"],
      ["where", "text"],
      ["size", ""],
      ["in use", "text wide"],
      ["snapshots", ""],
      ["target", "text"],
      ["LUN", ""],
    ];
    const rows = volumes.map((one) => ({
      cells: [
        one.name,
        one.where,
        one.size_bytes == null ? "-" : bytes(one.size_bytes),
        one.used_bytes == null ? "-" : bar(one.used_bytes / (one.size_bytes || 1), bytes(one.used_bytes)),
        String(one.snapshots.length),
        one.target ?? "-",
        one.lun == null ? "-" : String(one.lun),
      ],
    }));
    byId("volumes").replaceChildren(...(rows.length ? table("Volumes", columns, rows) : []));
  }

  showReplications(replications) {
    const columns = [["replication", "text"], ["partner", "text"], ["role", "text"], ["state", "text"], ["copy", "text wide"]];
    const rows = replications.map((one) => ({
      className: one.state === "failed" ? "bad" : "",
      cells: [
        one.name,
        one.partner,
        one.role,
        one.error ? `${one.state}: ${one.error}` : one.state,
        one.done == null ? "-" : bar(one.done, `${percent(100 * one.done)} %`),
      ],
    }));
    byId("replications").replaceChildren(...(rows.length ? table("Replications", columns, rows) : []));
  }

  showDisks(disks) {
    const columns = [
      ["disk", "text"], ["state", "text"], ["RAID set", "text"], ["reads/s", ""], ["writes/s", ""], ["MB/s", ""],
      ["mean ms", ""], ["outstanding", ""], ["busy", "text wide"], ["errors", ""],
    ];
    const rows = disks.map((one) => {
      const found = one.rates ?? {};
      const busy = found.busy_percent;
      return {
        className: one.state === "online" || one.state === "spare" ? "" : "bad",
        cells: [
          one.name, one.state, one.raid_set ?? "-", rate(found.reads), rate(found.writes), mibS(found.mib_s),
          ms(found.service_ms), found.outstanding == null ? "-" : found.outstanding.toFixed(1),
          busy == null ? "-" : bar(busy / 100, `${percent(busy)} %`), String(one.errors),
        ],
      };
    });
    byId("disks").replaceChildren(...(rows.length ? table("Disks", columns, rows) : []));
  }
}

const task = (one) =>
  element("span", "", bar(one.done, `${one.kind} ${percent(100 * one.done)} %${one.lacks_space ? ", waits for space" : ""}`));
