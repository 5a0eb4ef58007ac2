package notify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// Center makes alerts of findings. It has one owner, and reads no clock.
type Center struct {
	cfg      Config
	instance string
	rules    *compiled
	names    *names.Names // for headlines; nil has none
	fixed    []mute
	least    inference.Severity

	open      map[string]*open // by key
	holders   map[uint64]*open // by the id of a finding in IDs of an alert
	heartbeat int64            // when it was sent last
	begun     int64            // the first window of this run
	refused   uint64
}

// open is an alert that has not ended, as it is kept over restarts.
type open struct {
	Alert     Alert
	Severity  inference.Severity
	Due       bool     // to be sent as firing, once it may be
	Sent      bool     // it was sent, and its end is to be sent
	Repeated  int64    // when it was sent last
	Announced int64    `json:"Told"` // the same, with status open counted in
	IDs       []uint64 // of its findings that are open
	Old       bool     // of an earlier run, and not found again yet
	Within    string   // key of the alert that explains its last finding

	kind    inference.Kind
	subject inference.Element
}

// idsAnAlert bounds the open findings that are followed, by those of an alert on average.
const idsAnAlert = 16

// New makes a center for an instance. cfg must be valid.
func New(cfg Config, instance string) (*Center, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	least, err := inference.ParseSeverity(cfg.Severity)
	if err != nil {
		return nil, fmt.Errorf("severity: %w", err)
	}
	c := &Center{cfg: cfg, instance: instance, least: least, rules: &compiled{}, open: map[string]*open{}, holders: map[uint64]*open{}}
	for i := range cfg.Maintenance {
		m, err := cfg.Maintenance[i].compile()
		if err != nil {
			return nil, fmt.Errorf("maintenance[%d]: %w", i, err)
		}
		c.fixed = append(c.fixed, m)
	}
	return c, nil
}

// Follow makes the center follow other rules from the next step on.
func (c *Center) Follow(r *Rules) error {
	rules, err := r.compile()
	if err == nil {
		c.rules = rules
	}
	return err
}

// UseNames puts names into the headlines of findings from the next step on.
func (c *Center) UseNames(n *names.Names) { c.names = n }

// Counts returns the number of open alerts, and of findings for which there was no place.
func (c *Center) Counts() (open int, refused uint64) { return len(c.open), c.refused }

// Step takes the news of a window that ended at a time, in ns since 1970, and returns what is to be sent.
func (c *Center) Step(now int64, news []inference.Finding) []Alert {
	if c.begun == 0 || now < c.begun {
		c.begun = now
	}
	for i := range news {
		c.observe(&news[i])
	}
	for i := range news { // once all causes are known
		c.explain(&news[i])
	}
	var out []Alert
	for _, key := range c.keys() {
		out = c.appendDue(out, now, key)
	}
	if h := int64(c.cfg.Heartbeat); h > 0 && (now-c.heartbeat >= h || now < c.heartbeat) {
		c.heartbeat = now
		out = append(out, c.beat(now))
	}
	for i := range out {
		out[i].Open, out[i].Time = len(c.open), utc(now)
	}
	return out
}

func (c *Center) beat(now int64) Alert {
	text := fmt.Sprintf("hopscope %s is at work; %d alerts are open", c.instance, len(c.open))
	if c.refused > 0 {
		text += fmt.Sprintf("; %d findings were not sent, because max_open alerts were open", c.refused)
	}
	return Alert{Status: Heartbeat, Instance: c.instance, Start: utc(now), Updated: utc(now), Severity: inference.Info.String(), Text: text}
}

// keys are those of all open alerts, in their order, so that nothing depends on the map.
func (c *Center) keys() []string {
	keys := make([]string, 0, len(c.open))
	for k := range c.open {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(c.open[a].Alert.Start.Compare(c.open[b].Alert.Start), cmp.Compare(a, b))
	})
	return keys
}

// observe notes the changes of a finding.
func (c *Center) observe(f *inference.Finding) {
	key := Key(f)
	o := c.open[key]
	if held := c.holders[f.ID]; held != nil && held != o { // it names another element now
		c.drop(f.ID)
	}
	switch {
	case f.End != 0:
		if o != nil {
			o.Old = false // also if it was found by an earlier run
		}
		c.drop(f.ID)
		return
	case f.Cause != 0 || f.Severity < c.least:
		c.drop(f.ID) // it may have become evidence
		return
	case f.Learning && !c.cfg.Learning && o == nil: // what is open lasts, though detectors have begun anew
		return
	case o == nil && len(c.open) >= c.cfg.MaxOpen, c.holders[f.ID] == nil && len(c.holders) >= idsAnAlert*c.cfg.MaxOpen:
		c.refused++
		return
	case o == nil:
		o = &open{Alert: Alert{Instance: c.instance, Key: key, Start: utc(f.Start)}, Severity: f.Severity, Due: true, kind: f.Kind, subject: subjectOf(f)}
		c.open[key] = o
	}
	o.Old, o.Within = false, ""
	if c.holders[f.ID] == nil {
		o.IDs = append(o.IDs, f.ID)
		c.holders[f.ID] = o
	}
	if f.Severity > o.Severity {
		o.Severity, o.Due = f.Severity, true
	}
	a := &o.Alert
	a.Finding, a.Kind, a.Element, a.Severity = f.IDText(), f.Kind.String(), o.subject.String(), o.Severity.String()
	a.Headline, a.Runbook = c.names.Headline(f), Runbook(c.cfg.Runbook, f.Kind)
	a.Updated, a.Value, a.Baseline, a.Evidence, a.Learning, a.Text = utc(f.Updated), number(f.Value), number(f.Baseline), f.Evidence, f.Learning, strings.ToValidUTF8(f.Text, "\uFFFD")
}

// explain notes of an alert that ends because its finding became evidence of another one which that is.
func (c *Center) explain(f *inference.Finding) {
	o, cause := c.open[Key(f)], c.holders[f.Cause]
	if f.Cause != 0 && o != nil && len(o.IDs) == 0 && cause != nil && cause != o {
		o.Old, o.Within = false, cause.Alert.Key
	}
}

// drop takes a finding out of its alert.
func (c *Center) drop(id uint64) {
	if o := c.holders[id]; o != nil {
		o.IDs = slices.DeleteFunc(o.IDs, func(other uint64) bool { return id == other })
		delete(c.holders, id)
	}
}

// appendDue appends the alerts that are due of an alert.
func (c *Center) appendDue(out []Alert, now int64, key string) []Alert {
	o := c.open[key]
	lost := o.Old && now-c.begun >= int64(c.cfg.Forget)
	if lost || !o.Old && len(o.IDs) == 0 {
		return c.end(out, now, o, lost)
	}
	muted := func(m mute) bool { return m.active(now) && m.covers(o.kind, o.subject) }
	if slices.ContainsFunc(c.rules.mutes, muted) || slices.ContainsFunc(c.fixed, muted) {
		o.Due = true // when the mute ends
		return out
	}
	a := o.Alert
	at, acknowledged := c.rules.acknowledged[key]
	a.Acknowledged = acknowledged && at >= o.Alert.Start.UnixNano()
	switch {
	case o.Due && !o.Old:
		o.Due, o.Sent, o.Repeated, o.Announced = false, true, now, now
		a.Status = Firing
	case !o.Sent:
		return out
	case !o.Old && !a.Acknowledged && c.cfg.Repeat > 0 && since(now, o.Repeated) >= c.cfg.Repeat:
		o.Repeated, o.Announced = now, now
		a.Status = Repeated
	case since(now, o.Announced) >= refresh:
		o.Announced = now
		a.Status = Open
	default:
		return out
	}
	return append(out, a)
}

// refresh is how often open alerts are sent to receivers that forget.
const refresh = time.Minute

// since is how long ago something was sent. What was sent by a clock that has been set back since is long ago.
func since(now, then int64) time.Duration {
	if now < then {
		return 1<<63 - 1
	}
	return time.Duration(now - then)
}

// end forgets an alert, and sends its end where it was sent itself.
func (c *Center) end(out []Alert, now int64, o *open, lost bool) []Alert {
	for _, id := range o.IDs {
		delete(c.holders, id)
	}
	delete(c.open, o.Alert.Key)
	if !o.Sent {
		return out
	}
	a := o.Alert
	a.Status, a.End = Resolved, utc(max(now, a.Start.UnixNano()))
	a.Updated = a.End
	switch {
	case lost:
		a.Text = "not found again since the program was started anew; last: " + a.Text
	case o.Within != "":
		a.Text = "explained by " + o.Within + "; last: " + a.Text
	}
	return append(out, a)
}
