package sink

// Balance is the ledger from one sink's point of view.
type Balance struct {
	Sink      string           `json:"sink"`
	Received  uint64           `json:"received"` // Carried among them
	Carried   uint64           `json:"carried"`  // from the spool of an earlier run
	Stored    uint64           `json:"stored"`
	InFlight  map[string]int64 `json:"in_flight"`        // by stage
	Dropped   map[string]int64 `json:"dropped"`          // by stage
	Unsettled int64            `json:"unsettled"`        // received - stored - in flight - dropped: 0, or a defect
	Points    *PointBalance    `json:"points,omitempty"` // of a store of series
}

// PointBalance is the ledger in points, the unit that a store confirms.
type PointBalance struct {
	Made      uint64                   `json:"made"`    // Carried among them
	Carried   uint64                   `json:"carried"` // from the spool of an earlier run
	Stored    uint64                   `json:"stored"`
	InFlight  map[string]int64         `json:"in_flight"` // by stage
	Dropped   map[string]int64         `json:"dropped"`   // by stage
	Refused   uint64                   `json:"refused"`   // by the store
	Unsettled int64                    `json:"unsettled"` // made - stored - in flight - dropped - refused: 0, or a defect
	Series    map[string]SeriesBalance `json:"series"`    // by measurement
}

// SeriesBalance is the account of the points of one series. Points that are in flight or were dropped are in neither
// Stored nor Refused. Points that an earlier run left are in Made once they have been read.
type SeriesBalance struct {
	Made    uint64 `json:"made"`
	Stored  uint64 `json:"stored"`
	Refused uint64 `json:"refused"`
}
