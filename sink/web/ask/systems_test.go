package ask

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSystems holds that a system is on by what is known of it alone, and that others have the way to switch them on.
func TestSystems(t *testing.T) {
	plan := []QueryPlan{{Epoch: 3, Bits: 16, Queries: []string{"path", "latency"}}}
	control := func(s ControlState, err error) AskControl {
		return func(context.Context) (ControlState, error) { return s, err }
	}
	command := func(context.Context, string, uint32, string) error { return nil }
	into := System{System: "into", State: SystemInForce, Decided: []string{"10 of 10 interfaces"}}
	for _, c := range []struct {
		name string
		desk *Desk
		want string // states, in the order of the list
		says string
	}{
		{"nothing", &Desk{}, "off off off off off", "web.control"},
		{"no answer", &Desk{Command: command, Control: control(ControlState{}, errors.New("no control answers"))}, "unknown unknown off unknown unknown", "no control answers"},
		{"assignment", &Desk{Command: command, Control: control(ControlState{Systems: []System{into}}, nil)}, "off in-force off off off", "10 of 10 interfaces"},
		{"digests", &Desk{Digests: func() *Digests { return &Digests{Plans: plan, Received: 1000, Unread: 100, Decoded: 7, Undecided: 2} }}, "off off in-force off off", "90 % of 1 000 digests"},
		{"no digest", &Desk{Digests: func() *Digests { return &Digests{Plans: plan} }}, "off off planned off off", "no digest has come"},
		{"foreign digests", &Desk{Digests: func() *Digests { return &Digests{Plans: plan, Received: 10, Unread: 7, Rejected: 3} }}, "off off failed off off", "no digest that came is of the plan"},
		{"digests unconfigured", &Desk{Digests: func() *Digests { return &Digests{} }}, "off off off off off", "pint.plans"},
	} {
		w := httptest.NewRecorder()
		c.desk.ServeSystems(w, httptest.NewRequest("GET", "/api/systems", nil))
		var got SystemList
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var states []string
		for _, s := range got.Systems {
			states = append(states, s.State)
			if (s.State == SystemOff) != (s.SwitchOn != "") && s.State != SystemPlanned {
				t.Errorf("%s: %s is %s, and is switched on by %q", c.name, s.System, s.State, s.SwitchOn)
			}
			if s.Decided == nil || s.Installed == nil || s.Brought == nil {
				t.Errorf("%s: %s has null in place of a list", c.name, s.System)
			}
		}
		if s := strings.Join(states, " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
		if text := strings.ReplaceAll(w.Body.String(), "\u202f", " "); !strings.Contains(text, c.says) {
			t.Errorf("%s: %s does not contain %q", c.name, text, c.says)
		}
	}
}
