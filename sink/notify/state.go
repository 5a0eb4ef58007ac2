package notify

import (
	"encoding/json"
	"fmt"

	"github.com/hopscope/hopscope/inference"
)

// saved is the state of a center.
type saved struct {
	Version   int
	Heartbeat int64
	Begun     int64
	Refused   uint64
	Open      []*open
}

const stateVersion = 1

// AppendState appends the state that a process needs to go on.
func (c *Center) AppendState(dst []byte) []byte {
	s := saved{Version: stateVersion, Heartbeat: c.heartbeat, Begun: c.begun, Refused: c.refused}
	for _, key := range c.keys() {
		s.Open = append(s.Open, c.open[key])
	}
	b, err := json.Marshal(&s)
	if err != nil { // times outside of the years that JSON knows; without a state everything is found again
		return dst
	}
	return append(dst, b...)
}

// ReadState restores the state of AppendState, with the same findings. A state with an invalid part is refused whole,
// and leaves the center as it was.
func (c *Center) ReadState(b []byte) error {
	var s saved
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("state of alerts: %w", err)
	}
	if s.Version != stateVersion {
		return fmt.Errorf("state of alerts: version %d, want %d", s.Version, stateVersion)
	}
	all, holders := map[string]*open{}, map[uint64]*open{}
	for i, o := range s.Open {
		if o == nil {
			return fmt.Errorf("state of alerts: alert %d is missing", i+1)
		}
		if err := o.restore(); err != nil {
			return fmt.Errorf("state of alerts: alert %d: %w", i+1, err)
		}
		if len(all) >= c.cfg.MaxOpen { // the setting was lowered
			break
		}
		if all[o.Alert.Key] != nil {
			return fmt.Errorf("state of alerts: %q is there twice", o.Alert.Key)
		}
		all[o.Alert.Key] = o
		for _, id := range o.IDs {
			if holders[id] != nil {
				return fmt.Errorf("state of alerts: finding %016x is there twice", id)
			}
			holders[id] = o
		}
	}
	c.open, c.holders, c.heartbeat, c.begun, c.refused = all, holders, s.Heartbeat, s.Begun, s.Refused
	for _, o := range all {
		o.Alert.Instance = c.instance
	}
	return nil
}

// restore computes the fields that are not saved from those that are.
func (o *open) restore() (err error) {
	if o.kind, err = inference.ParseKind(o.Alert.Kind); err != nil {
		return err
	}
	if o.subject, err = inference.ParseElement(o.Alert.Element); err != nil {
		return err
	}
	f := inference.Finding{Kind: o.kind, Element: o.subject}
	if key := Key(&f); key != o.Alert.Key {
		return fmt.Errorf("is called %q, want %q", o.Alert.Key, key)
	}
	if !o.Old && len(o.IDs) == 0 || o.Severity > inference.Critical {
		return fmt.Errorf("%q has no finding, or no severity", o.Alert.Key)
	}
	return nil
}

// Restarted notes that findings from now on are those of detectors that begin anew, with other ids. Open alerts wait
// to be found again.
func (c *Center) Restarted() {
	clear(c.holders)
	for _, o := range c.open {
		o.Old, o.IDs = true, nil
	}
	c.begun = 0
}
