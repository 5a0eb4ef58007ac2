package sink

import (
	"strconv"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

var nameless = series("hop_position", "Position of hops without a node id in the reports of one exporter, in one window. "+
	"These hops are not in `hop`.",
	[]tag[inference.NamelessStats]{
		{"exporter", `source address of the datagrams; "network" for packets of the network`,
			func(s *inference.NamelessStats) string {
				switch {
				case s.Position == 0:
					return otherName
				case s.Exporter == decode.Addr{}:
					return "network"
				}
				return s.Exporter.String()
			}},
		{"position", "position in the list of hops of a report, from 1",
			func(s *inference.NamelessStats) string {
				return unlessFolded(s.Position == 0, strconv.Itoa(int(s.Position)))
			}},
	},
	distribution(func(s *inference.NamelessStats) (count uint64, latency, queue *inference.Summary) {
		return s.Count, &s.Latency, &s.Queue
	})).revised()
