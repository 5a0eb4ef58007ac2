package access

// Stats counts what a gate did.
type Stats struct {
	Requests      uint64
	HostsRefused  uint64 // by the check against DNS rebinding
	Unauthorized  uint64 // without a token, or with a wrong one
	Forbidden     uint64 // by their role
	CrossSite     uint64 // changes that a page of another site may have caused
	Ignored       uint64 // requests with headers of a proxy, from addresses that are none
	AddressTokens uint64 // tokens in an address
	Logins        uint64 // that began a session
	WrongLogins   uint64
	Slowed        uint64 // logins that had to wait
	Sessions      int    // open
	Evicted       uint64 // sessions that ended because there were too many
	Expired       uint64 // sessions that ended by their time
	Tokens        int    // by role
	Changes       uint64 // made
	Unrecorded    uint64 // changes that were refused, or whose failure is not recorded
	OddLines      uint64 // lines of the log of changes that are no records
}

// Stats is a snapshot of the counters.
func (g *Gate) Stats() Stats {
	n := &g.count
	st := Stats{
		Requests: n.requests.Load(), HostsRefused: n.hosts.Load(), Unauthorized: n.unauthorized.Load(), Forbidden: n.forbidden.Load(), CrossSite: n.crossSite.Load(),
		Ignored: n.headersIgnored.Load(), AddressTokens: n.addressTokens.Load(), Logins: n.logins.Load(), Changes: n.changes.Load(), Unrecorded: n.unrecorded.Load(),
		Tokens: len(g.tokens.list(g.o.Now())),
	}
	g.attempts.mu.Lock()
	st.WrongLogins, st.Slowed = g.attempts.wrong, g.attempts.slowed
	g.attempts.mu.Unlock()
	g.sessions.mu.Lock()
	st.Sessions, st.Evicted, st.Expired = len(g.sessions.all), g.sessions.evicted, g.sessions.expired
	g.sessions.mu.Unlock()
	if g.changes != nil {
		g.changes.mu.Lock()
		st.OddLines = g.changes.odd
		g.changes.mu.Unlock()
	}
	return st
}
