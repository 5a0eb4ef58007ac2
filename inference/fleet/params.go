package fleet

import (
	"fmt"
	"time"
)

// Params holds the parameters that all members of a fleet share. They are kept in the roster under the key "fleet", as JSON.
type Params struct {
	Name    string        `json:"name"`      // of the fleet, as the instance of its points
	Slices  int           `json:"slices"`    // partitions of windows and of reports
	Window  time.Duration `json:"window_ns"` // length
	Seed    string        `json:"seed"`      // what [seedMark] makes of the seed, which itself stays secret
	Codes   int           `json:"codes"`     // version of units and codes of partials
	Version int           `json:"version"`   // of the records
}

// Differences returns in words in what q, that a member was configured with, differs from the fleet's p.
func (p *Params) Differences(q *Params) (out []string) {
	differ := func(what string, fleet, mine any) {
		if fleet != mine {
			out = append(out, fmt.Sprintf("%s: the fleet has %v, this member %v", what, fleet, mine))
		}
	}
	differ("name", p.Name, q.Name)
	differ("slices", p.Slices, q.Slices)
	differ("window", p.Window, q.Window)
	differ("codes and units", p.Codes, q.Codes)
	differ("records", p.Version, q.Version)
	if p.Seed != q.Seed {
		out = append(out, "seed: that of this member is another one; give all members the same seed_file")
	}
	return out
}
