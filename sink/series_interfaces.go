package sink

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// appendInterfaces appends the points of the interfaces of a window, with one for all that have no series of their own.
func appendInterfaces(b []Point, w *Window) []Point {
	rest := inference.InterfaceStats{Folded: true}
	for i := range w.Interfaces {
		if s := &w.Interfaces[i]; s.Folded {
			rest.Add(s)
		} else {
			b = interfaces.append(b, w, w.End, s)
		}
	}
	if rest.Samples > 0 {
		b = interfaces.append(b, w, w.End, &rest)
	}
	return b
}

var interfaces = series("interface", "One point per interface and window in which its counters came: what they rose by since they came before, which can be "+
	"several windows ago. A count that the device does not keep, or that began anew meanwhile, is absent.",
	[]tag[inference.InterfaceStats]{
		{"interface", `interface by its number; "other" for all interfaces that found no place in the day`,
			func(s *inference.InterfaceStats) string { return unlessFolded(s.Folded, s.Name()) }},
		{"node", "node ID", func(s *inference.InterfaceStats) string { return unlessFolded(s.Folded, decimal(s.Node)) }},
	},
	[]field[inference.InterfaceStats]{
		integer("samples", "", "times that counters came, each with a rise since the time before", func(s *inference.InterfaceStats) uint64 { return s.Samples }),
		rise("in_packets", decode.CountInPackets, "packets received, damaged and discarded ones not"),
		rise("out_packets", decode.CountOutPackets, "packets to be sent"),
		rise("in_errors", decode.CountInErrors, "packets received damaged"),
		rise("out_errors", decode.CountOutErrors, "packets that could not be sent because of errors"),
		rise("in_discards", decode.CountInDiscards, "packets received whole and discarded"),
		rise("out_discards", decode.CountOutDiscards, "packets to be sent and discarded, as where a queue is full"),
		rise("in_octets", decode.CountInOctets, "octets received"),
		rise("out_octets", decode.CountOutOctets, "octets sent"),
		{FieldSpec{"rx_utilization_max", Float, "ratio", "share of the interface in use by what it received, largest"}, func(s *inference.InterfaceStats) (Field, bool) {
			u, ok := s.Received()
			return Field{Float: u}, ok
		}},
	}).revised()

// rise is a count of an interface, absent if it is not known.
func rise(key string, has decode.CounterField, doc string) field[inference.InterfaceStats] {
	unit := ""
	if has&(decode.CountInOctets|decode.CountOutOctets) != 0 {
		unit = "bytes"
	}
	return field[inference.InterfaceStats]{FieldSpec{key, Int, unit, doc}, func(s *inference.InterfaceStats) (Field, bool) {
		for i, n := range s.All() {
			if has == 1<<i {
				return Field{Int: int64(*n)}, s.Has&has != 0
			}
		}
		return Field{}, false
	}}
}
