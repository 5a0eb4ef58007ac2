package sink

// Volume is what stores receive in the mean second of a load.
type Volume struct {
	Points  float64 // of all series
	Reports float64 // single reports
	Hops    float64 // of these reports
	Rows    int     // hops of a window
	Spooled bool    // a store has a spool, beside which others keep what has no directory of its own
}

// Output is what a store is expected to make of a [Volume].
type Output struct {
	Takes   bool    // it encodes points
	Units   float64 // processor time a second, in units of traffic.Unit
	Garbage float64 // bytes that its files leave for the garbage collector between two collections
	Disk    float64 // bytes a day on this machine
	Most    float64 // most bytes that its settings leave there; 0 sets no bound
	Network float64 // bytes a second to a server
	Rests   string  // what this rests on
}

// Day is the seconds of a day.
const Day = 24 * 60 * 60
