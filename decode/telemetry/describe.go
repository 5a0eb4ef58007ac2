package telemetry

// Names returns the versions of the set, "0.5" and so on.
func (v Versions) Names() (names []string) {
	for i, name := range [...]string{"0.5", "1.0", "2.0"} {
		if v&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Deviations lists, for display, where o leaves the specifications.
func (o *Options) Deviations() (list []string) {
	note := func(is bool, what string) {
		if is {
			list = append(list, what)
		}
	}
	note(o.FlagsFirst, "report 1.0: D, Q, F before the reserved bits")
	note(o.Postcard, "report 1.0: 40 bytes of header whatever its length says")
	note(o.HostINT, "report 0.5: next protocols 3 (loss summary) and 4 (IPv4 with INT)")
	note(o.NoSinkID, "report 0.5: no sink node id before the packet")
	note(o.ZeroToEnd, "report 2.0: a length of 0 means to the end of the datagram")
	note(o.ShortToEnd, "report 2.0: a length of 255 means to the end of the datagram, however short")
	note(o.PINTDomain != 0, "report 2.0: PINT digests under a domain of their own")
	note(o.NoSequence, "the sequence number is constant: no loss can be seen")
	note(o.Unflagged, "INT in the packets of all reports, whatever their flag F says")
	return list
}
