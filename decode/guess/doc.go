// Package guess finds the dialect that explains frames that the dialect in use cannot read.
//
// Nothing on the wire names a dialect, and many bytes can be read in several ways. So a dialect is never recognised
// by a port or a mark. It is tried on a sample of one sender's packets, and has to explain all of it. A packet is
// explained when
//
//   - it is read without an error, its reserved bits are zero, and every length ends where something ends;
//   - it holds what telemetry is for: hops that name their node, or a digest;
//   - the packet that a report is about is one.
//
// Over the sample the values have to be possible: few nodes, increasing times, an egress after its ingress, a latency
// that matches its times. The verdict of [Guesser.Judge] is the profile that explains nearly all of the sample, or
// all such profiles. Judge does not choose between those that cannot be distinguished. If no profile explains the
// sample, packets also count whose hops name no node. Their content is reported, and is no evidence for the adoption
// of a profile.
//
// A verdict is a function of its arguments. Sampling, and the use of a verdict, are for the caller. A [Printer]
// writes the reports of frames, each in the dialect of its sender.
package guess
