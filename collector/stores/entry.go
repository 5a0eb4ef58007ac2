package stores

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// RefusedEntry is an entry as it is listed and shown.
type RefusedEntry struct {
	Name    string            `json:"name"`
	Dir     string            `json:"dir"`
	Problem string            `json:"problem,omitempty"` // why it cannot be read
	Time    time.Time         `json:"time,omitzero"`
	Sink    string            `json:"sink,omitempty"`
	Target  string            `json:"target,omitempty"`
	Points  uint64            `json:"points"`
	Series  map[string]uint64 `json:"series,omitempty"`
	Reasons []string          `json:"reasons,omitempty"`
	Groups  []refusedGroup    `json:"groups,omitempty"` // of show
}

// refusedGroup is a part of an entry that was refused for one reason.
type refusedGroup struct {
	Points  uint64 `json:"points"`
	Reason  string `json:"reason"`
	Payload string `json:"payload"` // as text
}

// ReadRefused reads an entry, with what its groups hold if groups is set.
func ReadRefused(dir, name string, groups bool) RefusedEntry {
	out := RefusedEntry{Name: name, Dir: dir}
	e, err := sink.ReadRefused(dir, name)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	out.Time, out.Sink, out.Target, out.Points = e.Time.UTC(), e.Sink, e.Target, e.Points()
	out.Series = map[string]uint64{}
	for i := range e.Groups {
		g := &e.Groups[i]
		for _, s := range g.Series {
			out.Series[s.Series] += s.Points
		}
		if !slices.Contains(out.Reasons, g.Reason) {
			out.Reasons = append(out.Reasons, g.Reason)
		}
		if groups {
			out.Groups = append(out.Groups, refusedGroup{g.Points, g.Reason, payloadText(g.Payload)})
		}
	}
	return out
}

// payloadText returns points as text. Lines stay as they are. Points of writers without a form of their own become
// lines.
func payloadText(payload []byte) string {
	var b sink.Batch
	if sink.DecodeBatch(payload, &b) != nil {
		return strings.ToValidUTF8(string(payload), "\ufffd")
	}
	var out strings.Builder
	for i := range b.Points {
		p := &b.Points[i]
		out.WriteString(p.Measurement)
		for _, t := range p.Tags {
			fmt.Fprintf(&out, ",%s=%s", t.Key, t.Value)
		}
		for j := range p.Fields {
			f := &p.Fields[j]
			switch f.Kind {
			case sink.Int:
				fmt.Fprintf(&out, " %s=%di", f.Key, f.Int)
			case sink.Float:
				fmt.Fprintf(&out, " %s=%v", f.Key, f.Float)
			default:
				fmt.Fprintf(&out, " %s=%q", f.Key, f.Str)
			}
		}
		fmt.Fprintf(&out, " %d\n", p.Time)
	}
	return out.String()
}

// FindRefused returns the entries with these names by directory, or all of them.
func FindRefused(dirs, names []string) (map[string][]string, error) {
	found := map[string][]string{}
	missing := slices.Clone(names)
	for _, dir := range dirs {
		list, err := sink.ListRefused(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range list {
			if len(names) == 0 || slices.Contains(names, name) {
				found[dir] = append(found[dir], name)
				missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
			}
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("there is no entry %q in %s; hopscope spool list has the names", missing[0], strings.Join(dirs, ", "))
	}
	return found, nil
}
