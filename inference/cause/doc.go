// Package cause groups findings that have one cause.
//
// One slow switch raises the latency of all its interfaces. One failed link changes the paths of many flows and drops
// the packets under way. Detectors publish each of these. A [Grouper] takes their findings of a window. It finds the
// elements of the network (nodes, interfaces, links, exporters, flows, routes) that explain them at the least cost.
//
// # Costs
//
// Every finding fits some elements, each with a misfit. For example, the latency of interface 4:1 fits the interface
// itself (0), the link behind it and the node. It fits the node behind the link less well. A blamed element costs its
// price, which is high for elements that seldom fail. A finding that it explains costs its misfit and its distance in
// time: findings that begin together fit better than those minutes apart. The price is about 2 and most misfits are
// less than 1. So two findings with an element in common cost less together than alone. Costs are negative logarithms
// of probabilities, up to a factor.
//
// Misfits were counted (ways_counted.go): how often a candidate was the faulty element, such as 10 of 109 for a slow
// interface and the link behind it. One case is added to both sides; a way without a count costs even odds. Findings
// of one fault begin more than 3 windows after the previous one in 72 of 660 cases, more than 10 in 4 of 660, more
// than 30 in 0 of 660. Findings about packets from its place begin more than 3 windows after it in 5 of 23. The
// counts cover the emulated network with failures of nodes, and the half of the second world (bench/findings/world)
// that may be tuned on ("hopscope-bench findings ways --seed 501 --seeds 5").
//
// Prices express how seldom elements fail, and were chosen by hand: an interface, flow or exporter 1 in 1,100, a link
// 1 in 1,600, a route 1 in 2,200, a node 1 in 4,400.
//
// The evidence against an element is added to its price. It consists of absent symptoms that would be reported, among
// those of the best-fitting kind of cause in the table of [faults]. Those figures are counts ([Scene.Against]).
//
// # Steps
//
// A new finding joins an open cause or becomes part of a new one, together with findings that stood alone until now.
// The choice that saves most is made. An open cause costs nothing more, so it takes what fits it, unless the new
// findings explain each other better. Its element may change by that, from an interface to its node. The choice is
// greedy: the cause that saves most comes first, and so on until none saves anything. The saving of a cause mostly
// falls while findings are taken away, so a heap selects causes at a cost of n log n. An entry is brought up to date
// when it reaches the top, and made anew for a cause that took something. Before the greedy choice, sets of up to three
// elements are tried for findings that several of them explain. Each of these findings goes to its element in the best
// set. A part of more than 64 findings is left to the greedy choice. A finding that begins long after a cause belongs
// to it only if it is about something similar. After sixty windows none does.
//
// A change in a mean of many windows is found late: the contrast of 3 windows with 27 is greatest after 7 windows, of
// 9 with 81 after 22, of 27 with 243 after 67. Such a finding is compared with causes that began in the windows in
// which it can have begun itself. It is also compared with a change of many paths in that time, which is remembered
// for it beyond its end. In TestLate 51 of 69 steps by 2 to 40 % were found late, 2 of them later than stated.
//
// A finding that nothing goes with stands for itself, without a cause. It joins one later if something comes that goes
// with it. Evidence never changes its cause, and causes are never merged, so that an id means the same from its start
// to its end.
//
// # What follows from what
//
// Two findings can have a cause in common although they are at different places. Each such step needs a fact of the
// network. The node behind an interface is learnt from the paths of flows ([Map]). A path change lists the hops that
// flows moved to. Packets of one flow are seen in one place and in another. Coincidence in time alone suffices in two
// cases. An exporter outside the network, such as a host that sends probes, joins a change of paths if it fell silent
// then. So does a flow that is seen at one node alone and changes its way at that moment.
//
// The direction of packets decides what follows from a place where they queue or get lost. Behind it they are fewer as
// long as that lasts, whenever that shows, and those that waited come together and wait once more. Before it, where
// packets of many senders come together, links carry more; an interface that carries more is seldom why. Two findings
// at one place behind a cause are rather one of that place.
//
// # Bounds
//
// A Grouper has at most maxAlone entries. There is one for each finding that stands alone and is open or ended a short
// time ago. There is one for each change of many paths that began in the last sixty windows. It holds maxCauses open
// causes with at most maxEvidence open findings each. A finding without a place stands for itself. Nothing depends on
// the order of the findings of a window.
package cause
