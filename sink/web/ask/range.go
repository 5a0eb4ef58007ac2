package ask

// Range is the time of an answer to from= and to=, with what it lacks. Rows of tables are sums over it, windows of charts are columns, and findings are as of its end.
type Range struct {
	FromMS       int64    `json:"from_ms"`       // what was asked for, widened to whole columns
	ToMS         int64    `json:"to_ms"`         // excluded
	ResolutionMS int64    `json:"resolution_ms"` // length of a column
	Merged       uint64   `json:"merged"`        // windows in the answer
	Columns      []uint32 `json:"columns"`       // windows merged in each column; 0 is a gap, whose values are null
	Lacks        []string `json:"lacks"`         // sentences on what the answer lacks
	Compared     *Earlier `json:"compared,omitempty"`
}

// History is the state of the history on disk.
type History struct {
	Kept        bool   `json:"kept"`
	Why         string `json:"why,omitempty"` // why there is none, and what to set
	OldestMS    int64  `json:"oldest_ms"`     // 0 where nothing is kept yet
	NewestMS    int64  `json:"newest_ms"`
	Bytes       int64  `json:"bytes"`             // on disk
	LostMinutes uint64 `json:"lost_minutes"`      // that the disk did not take in this run
	Damaged     uint64 `json:"damaged"`           // records that could not be read in this run
	Problem     string `json:"problem,omitempty"` // what is wrong at present, and what to do
}
