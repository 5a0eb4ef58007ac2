// The control of probes: its state, and the commands that operators give it.

import { may, reason, whenKnown } from "./access";
import { ask, change, type ControlCommand, type ControlState } from "./api";
import { confirmed } from "./confirm";
import { byId, el, setAttribute, setHidden, setText } from "./dom";

const names: Record<string, string> = { pause: "Pause", resume: "Resume", approve: "Approve", reject: "Reject", rollback: "Roll back", "dry-run": "Dry run", "wet-run": "End dry run" };

const phases: Record<string, string> = {
  starting: "no plan is made yet", making: "switches get the entries of the plan", moving: "agents get the probes of the plan", breaking: "entries that no plan needs are removed",
  steady: "all devices have the plan", "stood-down": "another controller has taken over", "no-network": "there are no probes", standby: "it stands by",
};

const sentence = (text: string): string => (text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`);

// words says in what state a control is.
function words(s: ControlState): string {
  if (s.not_answering) return sentence(s.not_answering);
  if (s.stands_by) return sentence(s.stands_by);
  const parts = [phases[s.phase] ?? s.phase, s.in_force ? `epoch ${s.in_force} is in force` : "no plan is in force", s.epoch && s.epoch !== s.in_force ? `epoch ${s.epoch} is being installed` : "",
    s.paused ? "paused" : "", s.dry_run ? "dry run" : "", s.waiting ? `epoch ${s.waiting} waits for approval${s.waiting_why ? ` (${s.waiting_why})` : ""}` : "",
    s.loads?.length ? `the program of ${s.loads.join(", ")} waits for approval` : "", s.failed?.length ? `out of service: ${s.failed.join(", ")}` : ""];
  return `Control: ${parts.filter((p) => p !== "").join(" · ")}${s.why ? `. ${sentence(s.why)}` : ""}`;
}

export class ControlView {
  private readonly box = byId("control");
  private readonly state = el("p", { class: "control-state" });
  private readonly answer = el("p", { class: "result", role: "status" });
  private readonly group = el("div", { class: "controls", role: "group", "aria-label": "Commands to the control of probes" });
  private readonly buttons = new Map<string, HTMLButtonElement>();
  private now: ControlState | null = null;
  private busy = false;

  constructor() {
    this.box.append(this.state, this.group, this.answer);
    whenKnown((me, attention) => this.load(attention.control, may("operator") && me.unchangeable === undefined));
  }

  private async load(there: boolean, commands: boolean): Promise<void> {
    setHidden(this.box, !there);
    if (!there) return;
    setHidden(byId("probed"), false);
    setHidden(byId("nav-probed"), false);
    setHidden(this.group, !commands);
    try {
      this.now = await ask<ControlState>("control/status");
    } catch (e) {
      setText(this.state, reason(e));
      return;
    }
    setText(this.state, words(this.now));
    if (commands) for (const c of this.now.commands) this.show(c);
  }

  private show(c: ControlCommand): void {
    let b = this.buttons.get(c.command);
    if (!b) {
      const id = `control-why-${c.command}`;
      b = el("button", { type: "button", class: "button small", "data-do": c.command, "aria-describedby": id, click: () => this.press(c.command) }, names[c.command] ?? c.command);
      this.buttons.set(c.command, b);
      this.group.append(b, el("span", { class: "hidden", id }));
    }
    // A button that makes no sense keeps its place in the order of keys, so that its reason can be read.
    setAttribute(b, "aria-disabled", c.barred ? "true" : null);
    setAttribute(b, "title", c.barred ? sentence(c.barred) : null);
    setText(byId(`control-why-${c.command}`), c.barred ? sentence(c.barred) : "");
  }

  private async press(command: string): Promise<void> {
    const s = this.now, c = s?.commands.find((x) => x.command === command);
    if (!s || !c || this.busy) return;
    if (c.barred) return this.say(`${names[command] ?? command}: ${c.barred}.`, true);
    this.busy = true;
    try {
      if (c.confirm && !(await confirmed(`${names[command] ?? command}?`, c.confirm, names[command] ?? command))) return;
      const done = await change("control", { command, ...(command === "approve" && s.waiting ? { epoch: s.waiting } : {}) });
      this.say(sentence(done), false);
    } catch (e) {
      this.say(`Not done: ${sentence(reason(e))}`, true);
    } finally {
      this.busy = false;
    }
    await this.load(true, true);
  }

  private say(text: string, bad: boolean): void {
    this.answer.classList.toggle("bad", bad);
    setText(this.answer, text);
  }
}
