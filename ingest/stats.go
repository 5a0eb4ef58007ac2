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
}
