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

var interfaces = series("interface", "Interface in a window with its counters: their rise since they were received last, which can be several windows ago. "+
	"A count is absent if the device does not keep it, or reset it meanwhile.",
	[]tag[inference.InterfaceStats]{
		{"interface", "number of the interface",
			func(s *inference.InterfaceStats) string { return unlessFolded(s.Folded, s.Name()) }},
		{"node", "node ID", func(s *inference.InterfaceStats) string { return unlessFolded(s.Folded, decimal(s.Node)) }},
	},
	[]field[inference.InterfaceStats]{
		integer("samples", "", "receipts of counters", func(s *inference.InterfaceStats) uint64 { return s.Samples }),
		rise("in_packets", decode.CountInPackets, "packets received, without damaged and discarded ones"),
		rise("out_packets", decode.CountOutPackets, "packets to be sent"),
		rise("in_errors", decode.CountInErrors, "packets received damaged"),
		rise("out_errors", decode.CountOutErrors, "packets not sent because of errors"),
		rise("in_discards", decode.CountInDiscards, "intact packets received and discarded"),
		rise("out_discards", decode.CountOutDiscards, "packets discarded instead of sent, as at a full queue"),
		rise("in_octets", decode.CountInOctets, "octets received"),
		rise("out_octets", decode.CountOutOctets, "octets sent"),
		{FieldSpec{"rx_utilization_max", Float, "ratio", "utilisation by received packets, maximum"}, func(s *inference.InterfaceStats) (Field, bool) {
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
