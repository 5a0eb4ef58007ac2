package ask

import "github.com/hopscope/hopscope/inference"

// Judged is how much of the last window was judged.
type Judged struct {
	Hops          int    `json:"hops"` // with records
	Judged        int    `json:"judged"`
	TooYoung      int    `json:"too_young"`
	TooFew        int    `json:"too_few"`
	NoLatency     int    `json:"no_latency,omitempty"`     // judged hops without a latency
	Paths         int    `json:"paths,omitempty"`          // of probes
	PathsUnjudged int    `json:"paths_unjudged,omitempty"` // of these, those whose delay was not judged
	MinRecords    uint64 `json:"min_records"`
	EnoughMS      int64  `json:"enough_ms,omitempty"` // window length in which most of the too few would be judged
	Text          string `json:"text"`                // all of it in a sentence
}

// FindingCount is the number of open findings.
type FindingCount struct {
	Open  int    `json:"open"`
	Worst string `json:"worst,omitempty"` // their greatest severity; absent where none is open
}

// UnreadRow is an exporter whose datagrams no profile reads.
type UnreadRow struct {
	Address string `json:"address"`
	Count   uint64 `json:"count"`
	AtLeast bool   `json:"at_least,omitempty"`
	Text    string `json:"text"`
	Sample  string `json:"sample,omitempty"` // hexadecimal
}

// UnreadList holds the exporters whose datagrams no profile reads.
type UnreadList struct {
	Total     int         `json:"total"` // with those that are left out
	Exporters []UnreadRow `json:"exporters"`
}

// NewJudged returns a coverage in the form of the API, nil for none.
func NewJudged(c *inference.Coverage) *Judged {
	if c == nil {
		return nil
	}
	return &Judged{c.Seen, c.Judged, c.Young, c.Few, c.NoLatency, c.Paths, c.Paths - c.PathsJudged, c.MinRecords, c.Enough().Milliseconds(), c.Text()}
}
