// Asks whether a cable shall be pulled or plugged in, and has the lab do it.

import { byId, say } from "/static/figures.js";

export class Cable {
  constructor() {
    this.dialog = byId("cable");
    this.asked = null;
    byId("cable-no").addEventListener("click", () => this.close());
    byId("cable-yes").addEventListener("click", () => this.carryOut());
  }

  /** `faults` are those in force: a link that is down for another reason stays down when it is plugged in. */
  ask({ name, up }, faults) {
    const others = faults.filter((one) => one.links.includes(name) && one.label !== `cable ${name}`);
    this.asked = { link: name, plugged: !up };
    byId("cable-title").textContent = up ? `Pull the cable of ${name}?` : `Plug the cable of ${name} in?`;
    byId("cable-text").textContent = up
      ? "The link goes down at both ends and stays down until the cable is plugged in again."
      : "The link comes up at both ends.";
    const heals = others.map((one) => `linerate lab heal ${one.label}`).join("; ");
    say("cable-others", others.length ? `Other faults of this link stay in force. To end them: ${heals}` : "");
    say("cable-error", "");
    byId("cable-yes").textContent = up ? "Pull" : "Plug in";
    byId("cable-yes").disabled = false;
    this.dialog.showModal();
    byId("cable-no").focus();
  }

  close() {
    if (this.dialog.open) this.dialog.close();
  }

  async carryOut() {
    byId("cable-yes").disabled = true;
    const trouble = await sent(this.asked);
    byId("cable-yes").disabled = false;
    if (trouble) say("cable-error", trouble);
    else this.close();
  }
}

/** What went wrong; empty if nothing did. */
async function sent(asked) {
  const headers = { "Content-Type": "application/json" };
  try {
    const answer = await fetch("/cable", { method: "POST", headers, body: JSON.stringify(asked) });
    if (answer.ok) return "";
    if (answer.status === 403) return "The page is not let in any more: open the address with its token again.";
    const { error, hint } = await answer.json();
    return hint ? `${error} (${hint})` : error;
  } catch {
    return "The server of this page does not answer: `linerate watch` starts it again.";
  }
}
