// Package suspicion finds the links that deserve a closer look. It turns the results of a measurement cycle into a list
// of suspects, with a weight, a confidence, a sentence and a time. It names links and probes by number and plans
// nothing.
//
// A link is one direction of it. A probe is the list of the links that it crosses ([Incidence]).
//
// # Evidence
//
// [State.Step] takes what a cycle brought, of which any part may be missing:
//
//   - Findings. Open findings that stand for themselves, or are the cause of others, are evidence against the links
//     that their element touches, from [Config.Least] on. Findings about reports and not about packets are none:
//     exporters that are silent or lose reports, and errors of the inventory. So are values that fell or stand still,
//     traffic that grew, and single flows that go another way. Of a node only those links count that probes accuse or
//     that are suspected already, if there are any. An interface whose findings have a cause elsewhere is not suspected
//     by the probes' values of it. A cause is evidence while a finding that it explains is open. A finding whose place
//     is as usual at present is none. If a line is dead by its rounds, flows that go another way and drops of the node
//     at its ends follow from it, and are none. Nor are the times on lines of which probes lost most of their rounds.
//     Nor are queues that begin as the line dies, if probes that cross them are as usual. A finding that a cause
//     explains accuses the links of the cause from then on, and no others.
//   - Hops. Probes report the time in the switch before each link, its queue and the time on the line. Package detect
//     compares these with their own history. A false finding of it is rarer than one in a million windows.
//   - Pairs. The times on both directions of a link are added up ([Incidence.Pair]), so that clocks cancel out. They
//     are compared in the same way, with a lower floor. The direction that takes longer is accused, or both, each with
//     its part of the confidence.
//   - Losses. These are the lost rounds of each probe. The fit of package loss finds the links that explain them. It
//     runs in each cycle with a loss, over the last cycle and the last 1 to 2, 2 to 4, ... 256 to 512. So a strong loss
//     is found at once and a weak one as soon as there is enough of it. A false culprit comes less than once in a
//     million cycles: each of the ten fits has a tenth of that chance, whatever they share. A culprit is well again
//     when twelve more rounds should have been lost and none was. Losses of probes that cross a dead line accuse no
//     other link but its other direction. A line is down if its two directions explain the losses of several culprits
//     of the fit that lost most rounds.
//   - Transits. These are the times of probes end to end, if they do not report single hops. Each is compared with its
//     own history. The links that explain the common excess are found by unmix.
//
// Links that the same probes cross cannot be distinguished by losses and transits. They are suspected together, with a
// part of the confidence each, which Why states. If an open finding names some of them as the place of losses or
// latencies, these explain the probes. The others are not suspected.
//
// # Hysteresis
//
// A link is suspected after [Config.RaiseAfter] cycles of evidence in a row, or [Config.DoubtAfter] if the confidence
// stays below a half. It is cleared after [Config.ClearAfter] cycles without evidence.
//
// The weight of a suspect is its confidence times 1, 2 or 4 by the severity of the evidence; of several pieces the
// greatest counts. Hops that are still being learnt have half the weight.
//
// # FANT
//
// [Fant] is the method that FANT publishes, for comparison.
package suspicion
