package telemetry

// Versions is a set of report versions.
type Versions uint8

// The versions, as members of a set.
const (
	V05 Versions = 1 << iota
	V10
	V20
	AllVersions = V05 | V10 | V20
)

// Options choose the versions that are accepted, and the deviations of known programs.
type Options struct {
	Versions Versions

	// FlagsFirst: 1.0 with D, Q, F before the six reserved bits instead of behind them (ONOS and programs derived
	// from it).
	FlagsFirst bool
	// Postcard: the 1.0 first word and 40 bytes of header, for any value of its length, with a flow number instead of
	// the timestamp (Braine).
	Postcard bool
	// HostINT: 0.5 with NProto 3, a loss summary, and NProto 4, an IPv4 packet with INT (Intel host INT).
	HostINT bool
	// NoSinkID: HostINT without the 4 bytes of sink node id that follow the fixed header under NProto 4.
	NoSinkID bool
	// ZeroToEnd: a Report Length of 0 in 2.0, with RepType 1, means up to the end of the datagram (laofan13/P4-INT).
	// Without the option no such report can have that length.
	ZeroToEnd bool
	// ShortToEnd: accept a Report Length of 0xFF in 2.0 with less than 255 words left.
	ShortToEnd bool
	// PINTDomain is the domain specific id of 2.0 under which the domain's metadata are a PINT digest. 0 turns it off.
	PINTDomain uint16
	// NoSequence: the sequence number is constant and counts nothing (ONOS, Braine).
	NoSequence bool
	// Unflagged: the packets of all reports are searched for INT, independently of their flag F.
	Unflagged bool
}

// MaxReports is the number of reports of one datagram that are read. More than fit into a jumbo frame with anything
// in them are an attempt to exhaust memory.
const MaxReports = 1024
