package decode

// Histogram holds the counts of a hop's values by bucket, as a device counted them itself.
type Histogram struct {
	Of      HopField // HopLatency in nanoseconds, or HopQueueOccupancy in bytes; 0 for none
	Buckets []Bucket // that are not empty, in ascending order
}

// Bucket counts values above Low and up to High.
type Bucket struct {
	Low, High uint64
	Count     uint64
	Open      bool // the last one, without an upper bound: High equals Low
}

// KeptBuckets is the number of buckets for which a report keeps memory, as of hops.
const KeptBuckets = 64
