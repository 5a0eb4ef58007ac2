package orchestrate

// Table is the work of one interface: its items on the packets of each flow, a line each.
type Table struct {
	Interface string  `json:"interface"`
	Entries   []Entry `json:"entries"`
}

// Entry is one line: on packets of the flow, write that many items, from the first on. The items of an interface are
// numbered from 0 up to its demand; after the last one comes number 0 again. Sink is set at the last interface assigned
// to the flow: all items of the packet are extracted and reported there, as [Freshness] counts.
type Entry struct {
	Flow  string `json:"flow"`
	First int64  `json:"first"`
	Items int64  `json:"items"`
	Sink  bool   `json:"sink,omitempty"` // the packet's items are extracted and reported behind this interface
}

// Tables returns for every interface the items that it stamps on each flow, in the form that switches need. There is a
// table for every interface that is served, in the order of the problem. Its flows are in the order of the problem,
// too.
//
// Items that are split are dealt out round the circle of their numbers. No flow has more than all items of an
// interface, so none gets an item twice. Every item that is carried N times is therefore on N flows.
func (p *Problem) Tables(plan *Plan) []Table {
	index := make(map[string]int, len(p.Interfaces))
	for k, i := range p.Interfaces {
		index[i.ID] = k
	}
	type pair struct {
		iface int
		flow  string
	}
	items := make(map[pair]int64, len(plan.Assignment)+len(plan.Shares))
	used := make(map[string]bool)
	for i, f := range plan.Assignment {
		if k, ok := index[i]; ok {
			items[pair{k, f}] = p.Interfaces[k].Demand
			used[f] = true
		}
	}
	for _, s := range plan.Shares {
		if k, ok := index[s.Interface]; ok {
			items[pair{k, s.Flow}] = s.Items
			used[s.Flow] = true
		}
	}
	entries, next := make([][]Entry, len(p.Interfaces)), make([]int64, len(p.Interfaces))
	for _, f := range p.Flows {
		if !used[f.ID] {
			continue
		}
		last := int32(-1)
		for _, i := range f.Interfaces {
			if n := items[pair{int(i), f.ID}]; n > 0 {
				entries[i] = append(entries[i], Entry{Flow: f.ID, First: next[i], Items: n})
				next[i] = (next[i] + n) % p.Interfaces[i].Demand
				last = i
			}
		}
		if last >= 0 {
			list := entries[last]
			list[len(list)-1].Sink = true
		}
	}
	var list []Table
	for k, e := range entries {
		if len(e) > 0 {
			list = append(list, Table{p.Interfaces[k].ID, e})
		}
	}
	return list
}

// Rates are the rates of the flows that a plan uses, in packets a second, as far as the problem has them.
func (p *Problem) Rates(plan *Plan) (rates map[string]float64) {
	used := map[string]bool{}
	for _, f := range plan.Assignment {
		used[f] = true
	}
	for _, s := range plan.Shares {
		used[s.Flow] = true
	}
	for i := range p.Flows {
		if f := &p.Flows[i]; used[f.ID] && f.Rate > 0 {
			if rates == nil {
				rates = map[string]float64{}
			}
			rates[f.ID] = f.Rate
		}
	}
	return rates
}
