package ioam

// IFAProtocol is the default IP protocol number of IFA. None is assigned: 253 is for experiments, and switches use it.
const IFAProtocol = 253

// Sizes in bytes.
const (
	headerLen   = 4
	metadataLen = 4
	hopLen      = 32
	tcpLen      = 20
	udpLen      = 8
	greLen      = 4
)

// Flags of the header.
const (
	FlagFragment   = 0x10 // a fragment header is there
	FlagTail       = 0x08 // stack and metadata header end the packet
	FlagInband     = 0x04 // a user's packet, no copy or probe
	FlagTurnAround = 0x02 // the far end sends the packet back
	FlagChecksum   = 0x01 // a checksum header is there

	reservedFlags = 0xe0
)

const (
	version       = 2
	localSpaces   = 0xf // global name space: each hop has its own
	routerSpace   = 2   // local name space of another layout of the same size
	noHopLimit    = 0xff
	nanosecondEnd = 1_000_000_000
)
