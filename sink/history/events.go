package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// mostFindings is the greatest number of findings of a record, and of an answer.
const mostFindings = 2000

// Account is what a sink's ledger counted in some time, in reports.
type Account struct {
	Received uint64            `json:"received"` // what an earlier run left in a spool is counted there
	Stored   uint64            `json:"stored"`
	Dropped  map[string]uint64 `json:"dropped,omitempty"` // by stage
}

// add adds what was counted at another time.
func (a *Account) add(o Account) {
	a.Received += o.Received
	a.Stored += o.Stored
	for stage, n := range o.Dropped {
		if a.Dropped == nil {
			a.Dropped = map[string]uint64{}
		}
		a.Dropped[stage] += n
	}
}

// events are what happened in the time of a record.
type events struct {
	Findings []finding          `json:"findings,omitempty"` // by id
	LeftOut  uint64             `json:"left_out,omitempty"` // findings that found no place
	Ledger   map[string]Account `json:"ledger,omitempty"`   // by sink
}

// finding is a finding with names in place of the numbers of a program.
type finding struct {
	inference.Finding
	Kind     string
	Severity string
}

func newFinding(f *inference.Finding) finding {
	out := finding{*f, f.Kind.String(), f.Severity.String()}
	out.Value, out.Baseline = finite(f.Value), finite(f.Baseline)
	return out
}

func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// plain is the finding with the numbers of this program.
func (f *finding) plain() (out inference.Finding, err error) {
	out = f.Finding
	if out.Kind, err = inference.ParseKind(f.Kind); err == nil {
		out.Severity, err = inference.ParseSeverity(f.Severity)
	}
	return out, err
}

// put keeps the last state of a finding.
func (e *events) put(f finding) {
	i, found := slices.BinarySearchFunc(e.Findings, f.ID, func(f finding, id uint64) int { return cmp.Compare(f.ID, id) })
	switch {
	case found && e.Findings[i].Updated <= f.Updated:
		e.Findings[i] = f
	case found:
	case len(e.Findings) >= mostFindings:
		e.LeftOut++
	default:
		e.Findings = slices.Insert(e.Findings, i, f)
	}
}

func (e *events) account(sink string, a Account) {
	if e.Ledger == nil {
		e.Ledger = map[string]Account{}
	}
	sum := e.Ledger[sink]
	sum.add(a)
	e.Ledger[sink] = sum
}

// add adds what happened at another time.
func (e *events) add(o *events) {
	for _, f := range o.Findings {
		e.put(f)
	}
	for sink, a := range o.Ledger {
		e.account(sink, a)
	}
	e.LeftOut += o.LeftOut
}

func readEvents(b []byte) (e events, err error) {
	if err := json.Unmarshal(b, &e); err != nil {
		return events{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if !slices.IsSortedFunc(e.Findings, func(a, b finding) int { return cmp.Compare(a.ID, b.ID) }) {
		return events{}, ErrCorrupt
	}
	return e, nil
}

// since is what balances have counted since before, which it takes the place of.
func since(before map[string]Account, balances []sink.Balance) map[string]Account {
	out := map[string]Account{}
	for i := range balances {
		b := &balances[i]
		now := Account{Received: b.Received - min(b.Carried, b.Received), Stored: b.Stored, Dropped: map[string]uint64{}}
		last, diff := before[b.Sink], Account{}
		for stage, n := range b.Dropped {
			now.Dropped[stage] = uint64(max(n, 0))
			if was := last.Dropped[stage]; now.Dropped[stage] > was {
				diff.add(Account{Dropped: map[string]uint64{stage: now.Dropped[stage] - was}})
			}
		}
		diff.Received, diff.Stored = now.Received-min(last.Received, now.Received), now.Stored-min(last.Stored, now.Stored)
		out[b.Sink], before[b.Sink] = diff, now
	}
	return out
}
