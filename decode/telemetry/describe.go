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
	say := func(is bool, what string) {
		if is {
			list = append(list, what)
		}
	}
	say(o.FlagsFirst, "report 1.0: D, Q, F before the reserved bits")
	say(o.Postcard, "report 1.0: 40 bytes of header whatever its length says")
	say(o.HostINT, "report 0.5: next protocols 3 (loss summary) and 4 (IPv4 with INT)")
	say(o.NoSinkID, "report 0.5: no sink node id before the packet")
	say(o.ZeroToEnd, "report 2.0: a length of 0 means to the end of the datagram")
	say(o.ShortToEnd, "report 2.0: a length of 255 means to the end of the datagram, however short")
	say(o.PINTDomain != 0, "report 2.0: PINT digests under a domain of their own")
	say(o.NoSequence, "the sequence number is constant: no loss can be seen")
	say(o.Unflagged, "INT in the packets of all reports, whatever their flag F says")
	return list
}
