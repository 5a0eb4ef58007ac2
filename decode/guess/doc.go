// Package guess finds the dialect that explains frames that the dialect in use cannot read.
//
// Nothing on the wire names a dialect, and many bytes can be read in several ways. So a dialect is never recognised by a port or
// a mark: it is tried on a sample of what one sender sends, and has to account for all of it. A packet is explained when
//
//   - it is read without an error, its reserved bits are zero, and every length ends where something ends;
//   - it holds what telemetry is for: hops that name their node, or a digest;
//   - the packet that a report is about is one.
//
// Over the sample the values have to be possible: few nodes, times that go on, an egress behind its ingress, a latency that is
// the difference of its times. [Guesser.Judge] gives the profile that explains nearly all of the sample, or all of them where
// several do: what cannot be distinguished is not decided. Where no profile does, packets count whose hops name no node, too; what they
// show is named, and is no evidence to adopt a profile by.
//
// A verdict is a function of its arguments. Sampling, and the use of a verdict, are for the caller. A [Printer] writes the reports of
// frames, each in the dialect of its sender.
package guess
