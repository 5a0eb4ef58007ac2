package collector

import (
	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// leftOut lists every limit that can leave something out, whether it did or not.
func (c *Collector) leftOut() []inference.Limit {
	figures, _ := c.tally.Figures()
	shards, _ := c.pipeline.ShardStats()
	list := append(figures.Left.Limits(),
		c.unwatched(),
		inference.Limit{Setting: "flows.memory_bytes", N: shards.EvictedPressure, What: "flows were forgotten early to make room for others"},
		inference.Limit{Setting: "flows.memory_bytes", N: shards.Refused, What: "reports found no place for their flow, and count for their hops alone"},
		inference.Limit{Setting: "flows.memory_bytes", N: shards.Unsketched, What: "records of hops found no memory beside their flow, and count for their hops alone"},
		inference.Limit{Setting: "flows.max_path_length", N: shards.LongPaths, What: "records of hops are beyond the longest path, and count for their hops alone"},
		inference.Limit{Setting: "pint.memory_bytes", N: shards.Digests.NoMemory, What: "digests are of flows for whose paths no memory was left"},
		inference.Limit{Setting: "pint.spray_bytes", N: shards.Digests.Unkept, What: "digests of flows that use several paths were not kept, or not for long, because their memory was full"},
		inference.Limit{Setting: "exporters.metrics.memory_bytes", N: c.pipeline.Totals().Malformed["otlp "+decode.NoRoom.String()], What: "data points are of streams that there is no memory for"},
		inference.Limit{Setting: "alerts.max_open", N: c.alerting().Refused(), What: "findings sent no alert, because too many alerts are open"})
	if c.ipfix != nil {
		f := c.ipfix.Figures()
		list = append(list,
			inference.Limit{Setting: "ipfix.templates", N: f.Refused, What: "templates and exporters of IPFIX were refused, because there was no room"},
			inference.Limit{Setting: "ipfix.templates", N: f.Evicted, What: "templates and exporters of IPFIX made room for others, and cannot be read until they are sent again"},
			inference.Limit{Setting: "ipfix.parked_sets", N: f.ParkedEvicted, What: "data sets of IPFIX left before their template came, because too many waited"})
	}
	return append(append(list, c.leftOutOfSources()...), c.leftOutOfStores()...)
}

// unwatched is how many exporters have no place. Without a window yet, it is none.
func (c *Collector) unwatched() inference.Limit {
	n, more := c.pipeline.Exporters.Unwatched()
	l := inference.Limit{Setting: "exporters.tracking.max_exporters", N: uint64(n), What: "exporters are not watched, and their losses are not counted"}
	if more {
		l.What += " (at least so many)"
	}
	return l
}

// leftOutOfSources returns what sources and the workers behind them left out.
func (c *Collector) leftOutOfSources() (list []inference.Limit) {
	for _, s := range c.opt.Sources {
		st := s.Stats()
		switch s.Name {
		case "udp":
			list = append(list,
				inference.Limit{Setting: "udp.max_datagram_bytes", N: st.Truncated, What: "datagrams were cut, and what is beyond the cut is lost"}, // by stage: cut
				inference.Limit{Setting: "udp.receive_buffer_bytes", N: st.KernelDropped, What: "datagrams were lost, because the socket buffer was full"})
		case "afpacket":
			list = append(list,
				inference.Limit{Setting: "afpacket.max_frame_bytes", N: st.Truncated, What: "frames were cut, and what is beyond the cut is lost"}, // by stage: cut
				inference.Limit{Setting: "afpacket.ring_bytes", N: st.KernelDropped, What: "frames were lost, because the ring was full"})
		case "afxdp":
			list = append(list,
				inference.Limit{Setting: "afxdp.max_frame_bytes", N: st.Truncated, What: "frames were cut, and what is beyond the cut is lost"}, // by stage: cut
				inference.Limit{Setting: "afxdp.umem_bytes", N: st.RingDropped + st.RingFull, What: "frames were lost, because the ring was full"},
				inference.Limit{Setting: "afxdp.ring_bytes", N: st.KernelDropped - min(st.KernelDropped, st.RingDropped+st.RingFull), What: "frames were lost, because the ring of AF_PACKET was full"})
		case "pcap":
			list = append(list, inference.Limit{Setting: "the snapshot length of what captures (tcpdump -s 0)", N: st.Truncated, What: "frames of captures were cut, and what is beyond the cut is lost"})
		case "otlp":
			list = append(list,
				inference.Limit{Setting: "otlp.max_requests", N: st.Refused, What: "requests to export metrics were sent back, because too many waited"},
				inference.Limit{Setting: "otlp.max_request_bytes", N: st.TooLong, What: "requests to export metrics were refused, because they were too long"})
		}
	}
	return list
}

// leftOutOfStores returns what stores, their queues and the queues before them left out.
func (c *Collector) leftOutOfStores() []inference.Limit {
	balances := c.ledger.Snapshot()
	// The first is the same for all stores.
	list := []inference.Limit{{Setting: "shard_queue_batches", N: uint64(balances[0].Dropped[ledger.DroppedShardQueue.String()]), What: "reports were dropped, because the queue of a shard was full"}}
	list = append(list, c.stores.Limits(balances)...)
	var dropped uint64
	for _, r := range c.opt.Reports {
		_, n := r.Counts()
		dropped += n
	}
	return append(list, inference.Limit{Setting: "parquet.raw_memory_bytes", N: dropped, What: "reports are missing in the raw stream, because its memory was full"})
}

// allLeftOut is leftOut with the limits of writers beside the stores, such as the page.
func (c *Collector) allLeftOut() []inference.Limit {
	list := c.leftOut()
	for _, w := range c.opt.Writers {
		if w, ok := w.(sink.Limited); ok {
			list = append(list, w.Limits()...)
		}
	}
	return list
}

// logLeftOut logs each limit once, when it begins to leave something out.
func (c *Collector) logLeftOut() {
	for _, l := range c.allLeftOut() {
		key := l.Setting + " " + l.What
		if l.N == 0 || c.loggedLimits[key] {
			continue
		}
		if c.loggedLimits == nil {
			c.loggedLimits = map[string]bool{}
		}
		c.loggedLimits[key] = true
		c.log.Warn("left out by a limit", "what", inference.LeftOut([]inference.Limit{l})[0])
	}
	if shards, _ := c.pipeline.ShardStats(); (shards.Digests.FewIDs.Flows > 0) != c.fewIDs {
		if c.fewIDs = !c.fewIDs; c.fewIDs {
			c.log.Warn("packets have few ids", "what", shards.Digests.FewIDs.String())
		}
	}
}
