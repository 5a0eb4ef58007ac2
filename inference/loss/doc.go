// Package loss finds packets that vanish between the first switch of their way and the last one, and the link that loses
// them.
//
// A packet that a switch drops and reports is a drop. A packet that vanishes on a line, or in a switch without a
// report, is in no report about packets that arrive. It shows where two switches report the same packets: the first
// one, when a packet enters, and the last one, when it leaves. Both choose the packets by a common hash, or the first
// one chooses and marks the packet.
//
// # Comparing
//
// A flow holds the IPv4 identifications of the latest packets and the switches that reported each of them. A packet is
// settled two seconds after its first report. It is lost if the first switch alone has reported it, and ignored if the
// last switch alone has. Packets on their way at the end of a window are not settled. Reports may overtake each other,
// and a repeated report counts once. A flow with more than 64 packets in two seconds is compared by a share of them.
// Both sides of the comparison choose that share by the identification. Flows are not compared if their packets have no
// identification (IPv6), or all the same one. Nor is a flow before a packet of it was reported by both.
//
// # Locating
//
// fit explains the losses of flows by as few links and flows as possible. A flow of n packets loses about Poisson(n Σ
// r). The sum is over the rates r of the links on its way and a floor that is normal, and is at most 1. Candidates are all links, and all
// flows that lost half of their packets or more. The first is the one that explains most, by the greatest gain of the
// log-likelihood. Then it takes the next, until the rest is chance. A step must also pass an exact binomial test. At
// the floor, as many losses or more come by chance less than once in three million fits. In the end a culprit is
// exchanged for other links that explain much more together, such as two of a switch's ports for the switch. The
// confidence of a culprit is its likelihood as a share of those of all candidates, each with its best rate. Links that
// the same flows cross cannot be distinguished, and share it.
package loss
