package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/notify"
	"github.com/hopscope/hopscope/sink/web/access"
)

// Desk makes the changes of operators on the page: acknowledgements, mutes and comments of findings, and commands to the
// control of probes. The gate records each before it is made.
type Desk struct {
	Gate    *access.Gate
	Rules   string           // file of acknowledgements and mutes; "" where this program sends no alerts
	Open    func() []Finding // open findings, as the page shows them
	Command Command          // nil where no control of probes can be reached
	Control AskControl       // its state; nil likewise
	Digests func() *Digests  // query plans and what came of them; nil where digests are not read

	control controlCache

	mu   sync.Mutex
	seen os.FileInfo // the file as it was read last
	read *notify.Rules
}

const maxComments = 20 // of a finding, in an answer

// rules returns what the file of rules holds now.
func (d *Desk) rules() (*notify.Rules, error) {
	if d.Rules == "" {
		return &notify.Rules{}, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := os.Stat(d.Rules)
	if errors.Is(err, fs.ErrNotExist) {
		return &notify.Rules{}, nil
	}
	if err != nil {
		return nil, err
	}
	if b := d.seen; b != nil && os.SameFile(info, b) && info.ModTime().Equal(b.ModTime()) && info.Size() == b.Size() {
		return d.read, nil
	}
	r, err := notify.ReadRules(d.Rules)
	if err == nil {
		d.seen, d.read = info, r
	}
	return r, err
}

// change changes the file of rules, and leaves out what has ended long ago.
func (d *Desk) change(now time.Time, change func(*notify.Rules) error) error {
	return notify.Change(d.Rules, func(r *notify.Rules) error {
		r.Drop(now, now.AddDate(-1, 0, 0))
		return change(r)
	})
}

// hasRules refuses changes of rules where there is no file of them.
func (d *Desk) hasRules() error {
	if d.Rules == "" {
		return &access.Refusal{Status: http.StatusConflict, Text: "this program sends no alerts: in a fleet its consumers do, whose alerts.file hopscope findings changes"}
	}
	return nil
}

// Acknowledge asks for a finding to be marked as known.
type Acknowledge struct {
	ID   string `json:"id"` // of an open finding, or the name of its alert
	Note string `json:"note,omitempty"`
}

// ServeAcknowledge acknowledges a finding.
func (d *Desk) ServeAcknowledge(w http.ResponseWriter, r *http.Request) {
	var in Acknowledge
	alert, err := "", d.hasRules()
	if err == nil {
		err = access.ReadBody(w, r, &in)
	}
	if err == nil {
		err = access.CheckNote("note", in.Note)
	}
	if err == nil {
		alert, err = AlertOf(d.Open(), in.ID)
	}
	if err != nil {
		access.Finish(w, "", err)
		return
	}
	now := time.Now().UTC().Truncate(time.Second)
	ack := notify.Acknowledgement{Alert: alert, By: author(r), Note: in.Note, At: now.Add(time.Second)}
	access.Finish(w, "acknowledged "+alert, d.Gate.Do(r, "findings/ack", alert, in.Note, func() error {
		return d.change(now, func(rules *notify.Rules) error {
			rules.Acknowledged = slices.DeleteFunc(rules.Acknowledged, func(x notify.Acknowledgement) bool { return x.Alert == alert })
			rules.Acknowledged = append(rules.Acknowledged, ack)
			return nil
		})
	}))
}

// author is the name of the author of a change in the file of rules.
func author(r *http.Request) string {
	if user := access.IdentityOf(r).User; user != "" {
		return user
	}
	return "the page"
}

// Mute asks for no alerts of an element, a kind, or a kind at an element.
type Mute struct {
	ID         string `json:"id,omitempty"`          // of an open finding, or the name of its alert, in place of element and kind
	Element    string `json:"element,omitempty"`     // node 7, interface 7:3, link 7-9 and the like
	Kind       string `json:"kind,omitempty"`        // such as high-latency
	ForSeconds int64  `json:"for_seconds,omitempty"` // 0 is until it is taken back
	Note       string `json:"note,omitempty"`
}

const maxMute = 366 * 24 * time.Hour

// rule returns the mute, with its element as findings write it.
func (m *Mute) rule(now time.Time, by string) (notify.Mute, error) {
	e, err := inference.ParseElement(m.Element)
	if err != nil {
		return notify.Mute{}, fmt.Errorf("element: %w", err)
	}
	out := notify.Mute{Element: e.String(), Kind: m.Kind, From: now.Format(time.RFC3339), By: by, Note: m.Note}
	switch {
	case out.Element == "" && m.Kind == "":
		return out, errors.New("element, kind: one is needed, or both")
	case m.ForSeconds < 0 || m.ForSeconds > int64(maxMute/time.Second):
		return out, errors.New("for_seconds: is outside 0..366 days")
	case m.ForSeconds > 0:
		out.Until = now.Add(time.Duration(m.ForSeconds) * time.Second).Format(time.RFC3339)
	}
	return out, errors.Join(out.Validate(), access.CheckNote("note", m.Note))
}

// of sets the element and the kind of the finding that is named.
func (m *Mute) of(open []Finding) error {
	if m.Element != "" || m.Kind != "" {
		return errors.New("id: excludes element and kind")
	}
	alert, err := AlertOf(open, m.ID)
	if err != nil {
		return err
	}
	f, err := notify.ParseKey(alert)
	m.Element, m.Kind = f.Element.String(), f.Kind.String()
	return err
}

// ServeMute mutes.
func (d *Desk) ServeMute(w http.ResponseWriter, r *http.Request) {
	d.mute(w, r, "findings/mute", func(rules *notify.Rules, m notify.Mute) error {
		rules.Mutes = append(slices.DeleteFunc(rules.Mutes, m.Same), m)
		return nil
	})
}

// ServeUnmute takes back a mute of the same element and kind.
func (d *Desk) ServeUnmute(w http.ResponseWriter, r *http.Request) {
	d.mute(w, r, "findings/unmute", func(rules *notify.Rules, m notify.Mute) error {
		n := len(rules.Mutes)
		if rules.Mutes = slices.DeleteFunc(rules.Mutes, m.Same); len(rules.Mutes) == n {
			return errors.New("nothing of that element and kind is muted")
		}
		return nil
	})
}

func (d *Desk) mute(w http.ResponseWriter, r *http.Request, action string, change func(*notify.Rules, notify.Mute) error) {
	var in Mute
	now := time.Now().UTC().Truncate(time.Second)
	err := d.hasRules()
	if err == nil {
		err = access.ReadBody(w, r, &in)
	}
	var rule notify.Mute
	if err == nil && in.ID != "" {
		err = in.of(d.Open())
	}
	if err == nil {
		rule, err = in.rule(now, author(r))
	}
	if err != nil {
		access.Finish(w, "", err)
		return
	}
	target, text := strings.TrimSpace(rule.Kind+" "+rule.Element), in.Note
	done := "took back the mute of " + target
	if action == "findings/mute" {
		until := rule.Until
		if until == "" {
			until = "it is taken back"
		}
		done = "muted " + target + " until " + until
		text = strings.TrimSpace("until " + until + ". " + text)
	}
	access.Finish(w, done, d.Gate.Do(r, action, target, text, func() error {
		return d.change(now, func(rules *notify.Rules) error { return change(rules, rule) })
	}))
}

// Comment asks for a comment on a finding.
type Comment struct {
	ID   string `json:"id"` // of an open finding, or the name of its alert
	Text string `json:"text"`
}

// ServeComment comments on a finding. The comment is its record in the log of changes, under the name of the alert, which outlives
// the ids of findings.
func (d *Desk) ServeComment(w http.ResponseWriter, r *http.Request) {
	var in Comment
	err := access.ReadBody(w, r, &in)
	if err == nil {
		err = access.CheckNote("text", in.Text)
	}
	if err == nil && strings.TrimSpace(in.Text) == "" {
		err = errors.New("text: is empty")
	}
	alert := ""
	if err == nil {
		alert, err = AlertOf(d.Open(), in.ID)
	}
	if err == nil {
		err = d.Gate.Do(r, "findings/comment", alert, in.Text, func() error { return nil })
	}
	access.Finish(w, "commented on "+alert, err)
}

// Order asks the control of probes for something.
type Order struct {
	Command string `json:"command"`         // pause, resume, approve, reject, rollback, dry-run or wet-run
	Epoch   uint32 `json:"epoch,omitempty"` // of the plan that is approved; 0 is whichever waits
}

const noControl = "no control of probes can be commanded from here: web.control names the admin.listen of one"

// ServeCommand commands the control of probes.
func (d *Desk) ServeCommand(w http.ResponseWriter, r *http.Request) {
	var in Order
	err := access.ReadBody(w, r, &in)
	switch {
	case err != nil:
	case d.Command == nil:
		err = &access.Refusal{Status: http.StatusConflict, Text: noControl}
	case !slices.Contains(commands, in.Command):
		err = fmt.Errorf("command: %.40q is not one of %s", in.Command, strings.Join(commands, ", "))
	case in.Epoch > 0 && in.Command != "approve":
		err = errors.New("epoch: belongs to approve")
	}
	if err != nil {
		access.Finish(w, "", err)
		return
	}
	target := ""
	if in.Epoch > 0 {
		target = fmt.Sprintf("epoch %d", in.Epoch)
	}
	access.Finish(w, "done: "+in.Command, d.Gate.Do(r, "control/"+in.Command, target, "", func() error {
		defer d.control.forget()
		return d.Command(r.Context(), in.Command, in.Epoch, author(r))
	}))
}

// Note is what an operator wrote, and when.
type Note struct {
	By   string `json:"by,omitempty"`
	Text string `json:"text,omitempty"`
	AtMS int64  `json:"at_ms,omitempty"`
}

// Attention is what operators did about an open finding.
type Attention struct {
	ID           string `json:"id"`
	Alert        string `json:"alert"`                  // its name, the same in the next run
	Acknowledged *Note  `json:"acknowledged,omitempty"` // absent if it is not
	Muted        *Note  `json:"muted,omitempty"`        // absent if it is not
	MutedUntil   string `json:"muted_until,omitempty"`  // absent if it is not, or until it is taken back
	MuteElement  string `json:"mute_element,omitempty"` // of the mute
	MuteKind     string `json:"mute_kind,omitempty"`
	Comments     []Note `json:"comments,omitempty"` // the newest first
}

// AttentionList lists the open findings that operators did something about.
type AttentionList struct {
	Alerts    bool        `json:"alerts"`  // findings can be acknowledged and muted
	Control   bool        `json:"control"` // a control of probes can be commanded
	Attention []Attention `json:"attention"`
	Problem   string      `json:"problem,omitempty"` // why acknowledgements and mutes cannot be read
}

// ServeAttention lists what operators did about open findings.
func (d *Desk) ServeAttention(w http.ResponseWriter, _ *http.Request) {
	out := AttentionList{Alerts: d.Rules != "", Control: d.Command != nil, Attention: []Attention{}}
	rules, err := d.rules()
	if err != nil {
		out.Problem, rules = err.Error(), &notify.Rules{}
	}
	comments := map[string][]Note{}
	for _, c := range d.Gate.Comments("", 1000) {
		if c.Failed == "" && len(comments[c.Target]) < maxComments {
			comments[c.Target] = append(comments[c.Target], Note{c.User, c.Text, c.AtMS})
		}
	}
	open, now := d.Open(), time.Now()
	for i := range open {
		f, err := open[i].Finding()
		if err != nil {
			continue
		}
		x := Attention{ID: open[i].ID, Alert: notify.Key(&f)}
		x.Comments = comments[x.Alert]
		if a, m := rules.Match(&f, time.UnixMilli(open[i].StartMS), now); a != nil || m != nil {
			if a != nil {
				x.Acknowledged = &Note{a.By, a.Note, a.At.UnixMilli()}
			}
			if m != nil {
				x.Muted, x.MutedUntil, x.MuteElement, x.MuteKind = &Note{By: m.By, Text: m.Note}, m.Until, m.Element, m.Kind
			}
		}
		if x.Acknowledged != nil || x.Muted != nil || len(x.Comments) > 0 {
			out.Attention = append(out.Attention, x)
		}
	}
	answer(w, out)
}

// answer sends a value as JSON.
func answer(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		access.Problem(w, http.StatusInternalServerError, "the answer could not be written")
		return
	}
	access.WriteJSON(w, http.StatusOK, names.EscapeJSON(data), "no-store")
}
