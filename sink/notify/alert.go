package notify

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// subjectOf returns the subject of a finding: the element that it names, or else its flow, or else its hop.
func subjectOf(f *inference.Finding) inference.Element {
	switch {
	case f.Element != (inference.Element{}):
		return f.Element
	case f.Flow.IPVersion != 0:
		return inference.ElementOfFlow(f.Flow)
	case f.Node != 0 || f.EgressIf != 0:
		return inference.ElementOfHop(inference.HopKey{Node: f.Node, EgressIf: f.EgressIf})
	}
	return inference.Element{}
}

// Key names an alert: the kind of its findings and what they are about, such as "high-latency node 7".
func Key(f *inference.Finding) string {
	if e := subjectOf(f).String(); e != "" {
		return f.Kind.String() + " " + e
	}
	return f.Kind.String()
}

// ParseKey reads the name of an alert: a finding with its kind and its element. An error names the part that it cannot
// read.
func ParseKey(key string) (f inference.Finding, err error) {
	kind, element, _ := strings.Cut(key, " ")
	k, err := inference.ParseKind(kind)
	e, err2 := inference.ParseElement(element)
	return inference.Finding{Kind: k, Element: e}, errors.Join(err, err2)
}

// Status is the reason for which an alert is sent.
type Status uint8

// The statuses.
const (
	Firing    Status = iota // it starts, its severity rises, or a mute of it ends
	Repeated                // it is still open
	Open                    // the same, for receivers that forget
	Resolved                // it has ended
	Heartbeat               // nothing but a sign of life
	Test                    // the operator tries whether alerts come
	numStatuses
)

var statusNames = [numStatuses]string{"firing", "repeated", "open", "resolved", "heartbeat", "test"}

// String returns the name.
func (s Status) String() string { return statusNames[min(s, numStatuses-1)] }

// MarshalText returns the name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name.
func (s *Status) UnmarshalText(b []byte) error {
	i := slices.Index(statusNames[:], string(b))
	if i < 0 {
		return fmt.Errorf("%q is no status of an alert", b)
	}
	*s = Status(i)
	return nil
}

// Alert is a notification about one finding. Times are UTC.
type Alert struct {
	Status   Status    `json:"status"`
	Instance string    `json:"instance"`           // the collector or the fleet that sends it
	Key      string    `json:"key,omitempty"`      // the same from firing to resolved
	Finding  string    `json:"finding,omitempty"`  // id of the latest finding
	Kind     string    `json:"kind,omitempty"`     //
	Severity string    `json:"severity,omitempty"` // the highest since it fired
	Element  string    `json:"element,omitempty"`  // what has to be looked at
	Start    time.Time `json:"start"`
	Updated  time.Time `json:"updated"`
	Time     time.Time `json:"time"`         // of this message
	End      time.Time `json:"end,omitzero"` // of one that is resolved
	Value    float64   `json:"value"`
	Baseline float64   `json:"baseline"`
	Evidence int       `json:"evidence"` // findings that the cause explains
	Learning bool      `json:"learning,omitempty"`
	Headline string    `json:"headline,omitempty"`    // place and figures in one short line
	Runbook  string    `json:"runbook_url,omitempty"` // section of docs/findings.md about the kind
	Text     string    `json:"text"`
	Open     int       `json:"open"` // alerts that are open in all

	Acknowledged bool `json:"acknowledged,omitempty"` // an operator has acknowledged it
}

// Screened is a with texts that can be shown: receivers show what nodes and interfaces are called by others.
func (a Alert) Screened() Alert {
	for _, text := range []*string{&a.Instance, &a.Key, &a.Finding, &a.Kind, &a.Severity, &a.Element, &a.Headline, &a.Runbook, &a.Text} {
		*text = names.Printable(*text)
	}
	return a
}

// utc is a time in ns since 1970.
func utc(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// number is a value that JSON can hold.
func number(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
