package emu

// ahead prefetches the memory of the next events: a large network spends most of its time waiting for it. The heap's
// first event is the next one, unless something is scheduled before it. The one after it is among the four behind it.
func (n *Network) ahead() {
	h := n.events.Heap
	for i := min(len(h), 5) - 1; i > 0; i-- {
		if id := h[i].Id; id >= 0 {
			prefetchPacket(&n.packets[id])
		}
	}
	if len(h) == 0 || h[0].Id < 0 {
		return
	}
	n.aheadOf(&n.packets[h[0].Id])
	for i := min(len(h), 5) - 1; i > 0; i-- {
		if id := h[i].Id; id >= 0 {
			p := &n.packets[id]
			if at := p.comesTo(); at >= 0 {
				prefetchRoute(n.routes.At(at, n.hosts[p.dst].edge, len(n.switches)))
			}
		}
	}
}

// comesTo is the switch that a packet reaches in its next event, or -1.
func (p *packet) comesTo() int32 {
	switch {
	case p.kind == sourceRouted:
		return -1
	case p.out < 0:
		return p.node
	case p.peer < 0:
		return -1
	}
	return p.then
}

// aheadOf prefetches what the next event of a packet uses beside the packet. That is its frame, the switch that it
// leaves with the queue there, and its next hop at the switch that it comes to.
func (n *Network) aheadOf(p *packet) {
	if p.kind == sourceRouted {
		return
	}
	if p.out >= 0 {
		prefetchQueue(&n.queues[p.out], &n.switches[p.node])
		prefetchPort(&n.ports[max(0, p.peer)], &n.counts[p.out])
	}
	if p.pass != nil {
		prefetchPass(p.pass)
	}
	if at := p.comesTo(); at >= 0 {
		out := max(0, n.nextHop(at, &n.hosts[p.dst], p.hash, p.V6))
		prefetchQueue(&n.queues[out], &n.switches[at])
		prefetchPort(&n.ports[out], &n.counts[out])
	}
	if cap(p.Buf) > 0 && cap(p.hops) > 0 {
		prefetchFrame(&p.Buf[:1][0], &p.hops[:1][0])
	}
}
