package decode

// Rare holds the parts of a [Report] that few reports have. Each of them is empty where the report has nothing of it.
// They keep their memory when a report is reused.
type Rare struct {
	Inner FlowKey // of the innermost IP packet in that of Flow, where it carries one

	Template *Template // of the record that Unknown is; without elements where it did not come yet

	Counts []HopCounts // of the first hops, in their order

	Histogram Histogram // of the one hop

	Counters Counters // of an interface

	Traffic *Traffic // of the packets that a sample or a record stands for; nil or empty where nothing is known

	Probes *ProbeCounts // of KindProbes; nil or empty for other kinds

	IOAM IOAMOption // the rest of an IOAM option or an IFA header
}

// AddRare returns the rare parts of r, to be filled in. They are empty except for values that were filled in before.
func (r *Report) AddRare() *Rare {
	if r.Rare == nil {
		if r.Rare, r.kept = r.kept, nil; r.Rare == nil {
			r.Rare = new(Rare)
		}
	}
	return r.Rare
}

// reset makes x empty. It keeps the memory of its lists, unless it is much.
func (x *Rare) reset() {
	counts, buckets, nodes := kept(x.Counts, KeptHops), kept(x.Histogram.Buckets, KeptBuckets), kept(x.IOAM.Nodes, KeptHops)
	traffic, probes := x.Traffic, x.Probes
	*x = Rare{}
	x.Counts, x.Histogram.Buckets, x.IOAM.Nodes = counts, buckets, nodes
	if traffic != nil {
		*traffic = Traffic{}
		x.Traffic = traffic
	}
	if probes != nil {
		*probes = ProbeCounts{Delays: kept(probes.Delays, KeptDelays), Way: kept(probes.Way, MostWay)}
		x.Probes = probes
	}
}

// kept returns the memory of a list, empty, unless it has room for more than most.
func kept[T any](list []T, most int) []T {
	if cap(list) > most {
		return nil
	}
	return list[:0]
}
