package ingest

// Stats counts what a source saw since it was started. All numbers are of frames (datagrams, for sockets).
type Stats struct {
	Frames        uint64 // handed over
	Bytes         uint64 // in those
	KernelDropped uint64 // lost before the source could read them, as the kernel counts (socket buffer full)
	Truncated     uint64 // cut because they were longer than the buffer; handed over as they are
	Refused       uint64 // received, but from a source that the configuration does not admit; not handed over
	TooLong       uint64 // refused because they were longer than the source takes; not handed over
	Damaged       uint64 // not readable from the input (a broken record of a file)

	// Of rings of AF_XDP (XDP_STATISTICS):
	Steered            uint64 // handed over from them; in Frames, too
	RingDropped        uint64 // no memory was free; in KernelDropped, too
	RingFull           uint64 // the ring was full; in KernelDropped, too
	FillEmpty          uint64 // attempts of the kernel to find free memory, without success
	InvalidDescriptors uint64 // memory that the kernel refused
}
