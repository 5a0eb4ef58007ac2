package suspicion

import (
	"maps"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// named are the links that open findings name as the place of losses, and of latencies. Of links that the same probes
// cross, those explain what the probes show: what one cause explains is no evidence against others.
type named struct {
	losses, latencies map[int32]bool
	kept              map[keptClass][]int32 // of a class that is accused, the links that findings named last
}

// keptClass is a class of links by what its probes show.
type keptClass struct {
	class  int32
	losses bool
}

// explainsLosses reports whether a finding of the kind locates losses.
func explainsLosses(k inference.Kind) bool {
	switch k {
	case inference.PathChanged, inference.PacketLoss, inference.RoutingLoop, inference.BlackHole, inference.InterfaceErrors, inference.InterfaceDiscards:
		return true
	}
	return false
}

// explainsLatencies reports whether a finding of the kind locates waiting packets.
func explainsLatencies(k inference.Kind) bool {
	return k == inference.HighLatency || k == inference.HighQueue
}

// collect notes the links and interfaces that open findings name which are evidence themselves, and of latencies nodes
// as well. Drops of a node may be packets of few flows, and do not explain losses of probes.
func (x *named) collect(s *State, all []inference.Finding) {
	if x.losses == nil {
		x.losses, x.latencies, x.kept = map[int32]bool{}, map[int32]bool{}, map[keptClass][]int32{}
	}
	clear(x.losses)
	clear(x.latencies)
	if s.places == nil {
		return
	}
	for i := range all {
		f := &all[i]
		if f.End != 0 || f.Resting || !s.counts(f) || f.Element.Kind == inference.FlowElement || f.Element.Kind == inference.RouteElement {
			continue
		}
		to := x.losses
		switch {
		case explainsLatencies(f.Kind):
			to = x.latencies
		case !explainsLosses(f.Kind) || f.Element.Kind == inference.NodeElement:
			continue
		}
		s.touched = s.places.Links(s.touched[:0], f)
		for _, l := range s.touched {
			to[l] = true
		}
	}
}

// forget drops what is kept of classes that losses, or latencies, accuse no more.
func (x *named) forget(losses bool, accused func(class int32) bool) {
	maps.DeleteFunc(x.kept, func(k keptClass, _ []int32) bool { return k.losses == losses && !accused(k.class) })
}

// among returns those links of a class that findings name, or named last while the class has been accused. It returns
// all of it if there are none.
func (x *named) among(class int32, links []int32, losses bool) []int32 {
	by, key := x.latencies, keptClass{class, losses}
	if losses {
		by = x.losses
	}
	if list := slices.DeleteFunc(slices.Clone(links), func(l int32) bool { return !by[l] }); len(list) > 0 {
		x.kept[key] = list
	}
	if list, there := x.kept[key]; there {
		return list
	}
	return links
}
