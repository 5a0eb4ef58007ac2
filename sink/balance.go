package sink

// Balance is the ledger from one sink's point of view.
type Balance struct {
	Sink      string           `json:"sink"`
	Received  uint64           `json:"received"` // Carried among them
	Carried   uint64           `json:"carried"`  // from the spool of an earlier run
	Stored    uint64           `json:"stored"`
	InFlight  map[string]int64 `json:"in_flight"` // by stage
	Dropped   map[string]int64 `json:"dropped"`   // by stage
	Unsettled int64            `json:"unsettled"` // received - stored - in flight - dropped: 0, or a defect
}
