package suspicion

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Incidence holds the links that each probe crosses.
type Incidence struct {
	links        int
	probes       [][]int32 // sorted, each link once
	cross        [][]int32 // by class: probes
	class        []int32   // by link: that of links which the same probes cross; -1 for links that none crosses
	alike        [][]int32 // by class: its links
	probeClasses [][]int32 // by probe: its classes, sorted
	reverse      []int32   // by link: the other direction of it, or -1; nil if that is not known
}

// NewIncidence takes the links of each probe, below a number of links, in any order. The lists are copied.
func NewIncidence(links int, probes [][]int32) (*Incidence, error) {
	in := &Incidence{links: links, probes: make([][]int32, len(probes)), class: make([]int32, links), probeClasses: make([][]int32, len(probes))}
	cross := make([][]int32, links)
	for p, list := range probes {
		list = slices.Clone(list)
		slices.Sort(list)
		in.probes[p] = slices.Compact(list)
		for _, l := range in.probes[p] {
			if l < 0 || int(l) >= links {
				return nil, fmt.Errorf("probe %d crosses link %d; there are %d links", p, l, links)
			}
			cross[l] = append(cross[l], int32(p))
		}
	}
	known := map[string]int32{}
	var key []byte
	for l := range cross {
		if len(cross[l]) == 0 {
			in.class[l] = -1
			continue
		}
		key = key[:0]
		for _, p := range cross[l] {
			key = binary.LittleEndian.AppendUint32(key, uint32(p))
		}
		c, there := known[string(key)]
		if !there {
			c = int32(len(in.cross))
			known[string(key)] = c
			in.cross, in.alike = append(in.cross, cross[l]), append(in.alike, nil)
		}
		in.class[l] = c
		in.alike[c] = append(in.alike[c], int32(l))
	}
	for c, list := range in.cross {
		for _, p := range list {
			in.probeClasses[p] = append(in.probeClasses[p], int32(c))
		}
	}
	return in, nil
}

// Pair returns which link is the other direction of each, -1 for one that has none or where it is not known. The list
// is copied.
func (in *Incidence) Pair(back []int32) error {
	if len(back) != in.links {
		return fmt.Errorf("the other directions of %d links; there are %d links", len(back), in.links)
	}
	for l, b := range back {
		if b != -1 && (b < 0 || int(b) >= in.links || int(b) == l || back[b] != int32(l)) {
			return fmt.Errorf("link %d has link %d as its other direction, which does not have it", l, b)
		}
	}
	in.reverse = slices.Clone(back)
	return nil
}

// Alike returns the links that the same probes cross as a link, itself among them: what probes report from end to end
// cannot distinguish them. It is empty for a link that no probe crosses.
func (in *Incidence) Alike(link int32) []int32 {
	if c := in.class[link]; c >= 0 {
		return in.alike[c]
	}
	return nil
}

// sameProbes returns the number here of a probe of another incidence that crosses the same links, or -1; link gives
// that of a link.
func (in *Incidence) sameProbes(old *Incidence, link func(int32) int32) func(int32) int32 {
	var key []byte
	keyOf := func(list []int32) string {
		key = key[:0]
		for _, l := range list {
			key = binary.LittleEndian.AppendUint32(key, uint32(l))
		}
		return string(key)
	}
	here := make(map[string][]int32, len(in.probes))
	for p, list := range in.probes {
		k := keyOf(list)
		here[k] = append(here[k], int32(p))
	}
	now := slices.Repeat([]int32{-1}, len(old.probes))
	for p, list := range old.probes {
		moved := make([]int32, len(list))
		for k, l := range list {
			moved[k] = link(l)
		}
		slices.Sort(moved)
		k := keyOf(moved)
		if same := here[k]; len(same) > 0 {
			now[p], here[k] = same[0], same[1:]
		}
	}
	return func(p int32) int32 { return now[p] }
}
