package solve

import "slices"

// transport sends items from interfaces to open flows, any part of a demand on any flow, by shortest augmenting paths.
// It is the problem itself where demands may be split, and a relaxation where they may not.
type transport struct {
	p     *problem
	whole bool    // a demand above the room of a flow goes elsewhere entirely, for it could not be split
	at    []int32 // by entry of flowItem: the entry of pathItem for the same pair
	x     []int64 // items, by entry of pathItem
	load  []int64
	room  []int64 // of open flows; 0 for closed ones
	left  []int64 // items of the interface that are not sent
	over  [][]int32

	seenI, seenF []int32 // stamp of the search that came here
	fromI, fromF []int32 // entry of pathItem by which it came
	stamp        int32
	queue        []int32
	effort       int64
}

func newTransport(p *problem, whole bool) *transport {
	t := &transport{
		p: p, whole: whole, at: make([]int32, len(p.flowItem)), x: make([]int64, len(p.pathItem)),
		load: make([]int64, p.flows), room: make([]int64, p.flows), left: make([]int64, p.ifaces),
		over:  make([][]int32, p.ifaces),
		seenI: make([]int32, p.ifaces), seenF: make([]int32, p.flows), fromI: make([]int32, p.ifaces), fromF: make([]int32, p.flows),
	}
	next := make([]int32, p.ifaces)
	copy(next, p.flowAt)
	for e, i := range p.pathItem {
		t.at[next[i]] = int32(e)
		next[i]++
	}
	for i, d := range p.demand {
		t.left[i] = d * int64(p.want[i])
	}
	return t
}

// open lets flow f carry up to room items.
func (t *transport) open(f int32, room int64) {
	t.room[f] = room
	for e := t.p.pathAt[f]; e < t.p.pathAt[f+1]; e++ {
		i := t.p.pathItem[e]
		if !t.whole || t.p.demand[i] <= t.p.room[f] || int(f) >= t.p.real {
			t.over[i] = append(t.over[i], e)
		}
	}
}

// close takes everything from flow f.
func (t *transport) close(f int32) {
	for e := t.p.pathAt[f]; e < t.p.pathAt[f+1]; e++ {
		i := t.p.pathItem[e]
		t.left[i] += t.x[e]
		t.x[e] = 0
		if !t.whole || t.p.demand[i] <= t.p.room[f] || int(f) >= t.p.real {
			t.over[i] = without(t.over[i], e)
		}
	}
	t.load[f], t.room[f] = 0, 0
}

// most is how many items of interface i may go to flow f: those of one copy, but all may be left out.
func (t *transport) most(i, f int32) int64 {
	if int(f) >= t.p.real {
		return t.p.demand[i] * int64(t.p.want[i])
	}
	return t.p.demand[i]
}

// flowOf is the flow that entry e of pathItem, in the list of interface i, belongs to.
func (t *transport) flowOf(i, e int32) int32 {
	lo, hi := t.p.flowAt[i], t.p.flowAt[i+1]
	k, _ := slices.BinarySearch(t.at[lo:hi], e) // entries rise with the flows
	return t.p.flowItem[int(lo)+k]
}

// send sends what it can of interface i, moving items of others where needed, and reports whether that is all.
func (t *transport) send(i int32) bool {
	for t.left[i] > 0 {
		f := t.find(i)
		if f == none {
			return false
		}
		t.augment(i, f)
	}
	return true
}

// find searches for a flow with room that items of i can reach. After a search in vain, the stamped interfaces and flows
// are a cut: those flows are full, and carry what those interfaces send anywhere.
func (t *transport) find(i int32) int32 {
	t.stamp++
	t.queue = append(t.queue[:0], i)
	t.seenI[i] = t.stamp
	for head := 0; head < len(t.queue); head++ {
		j := t.queue[head]
		t.effort += int64(len(t.over[j]))
		for _, e := range t.over[j] {
			if t.x[e] == t.p.demand[j] && t.p.real == t.p.flows {
				continue
			}
			f := t.flowOf(j, e)
			if t.seenF[f] == t.stamp || t.x[e] == t.most(j, f) {
				continue
			}
			t.seenF[f], t.fromF[f] = t.stamp, e
			if t.load[f] < t.room[f] {
				return f
			}
			for o := t.p.pathAt[f]; o < t.p.pathAt[f+1]; o++ {
				if k := t.p.pathItem[o]; t.x[o] > 0 && t.seenI[k] != t.stamp {
					t.seenI[k], t.fromI[k] = t.stamp, o
					t.queue = append(t.queue, k)
				}
			}
		}
	}
	return none
}

// augment sends items of i along the way found to flow f.
func (t *transport) augment(i, f int32) {
	n := min(t.left[i], t.room[f]-t.load[f])
	for g := f; ; {
		e := t.fromF[g]
		j := t.p.pathItem[e]
		n = min(n, t.most(j, g)-t.x[e])
		if j == i {
			break
		}
		n = min(n, t.x[t.fromI[j]])
		g = t.flowOf(j, t.fromI[j])
	}
	t.load[f] += n
	t.left[i] -= n
	for g := f; ; {
		e := t.fromF[g]
		j := t.p.pathItem[e]
		t.x[e] += n
		if j == i {
			return
		}
		t.x[t.fromI[j]] -= n
		g = t.flowOf(j, t.fromI[j])
	}
}

// level gives the smallest level, from low on, so that everything can be sent with no flow above it, and the transport
// there. Where none will do it gives the interfaces that want more than the flows they pass can carry, and how much.
//
// Every cut that is found gives the next level that it leaves possible (Newton's method on the capacity of cuts, which
// is concave), so the level never goes too far.
func (p *problem) level(low int64, whole bool, stop func() bool) (level int64, t *transport, short []int32, missing int64) {
	t = newTransport(p, whole)
	for f := range int32(p.real) {
		t.open(f, min(p.room[f], low))
	}
	for f := p.real; f < p.flows; f++ {
		t.open(int32(f), p.room[f])
	}
	for i := range int32(p.ifaces) {
		for !t.send(i) {
			if stop() {
				return low, nil, nil, 0
			}
			rising := int64(0)
			for f, s := range t.seenF[:p.real] {
				if s == t.stamp && p.room[f] > low {
					rising++
				}
			}
			if rising == 0 {
				for j, s := range t.seenI {
					if s == t.stamp {
						short = append(short, int32(j))
					}
				}
				return low, t, short, t.left[i]
			}
			low += (t.left[i] + rising - 1) / rising
			for f := range p.real {
				t.room[f] = min(p.room[f], low)
			}
		}
	}
	return low, t, nil, 0
}
