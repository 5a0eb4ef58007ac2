// Package cause groups findings that have one cause.
//
// One slow switch raises the latency of all its interfaces, one failed link changes the paths of many flows and drops the
// packets under way. Detectors publish each of these. A [Grouper] takes their findings of a window, and finds the elements of
// the network (nodes, interfaces, links, exporters, flows, routes) that explain them at the least cost.
//
// # Costs
//
// Every finding fits some elements, each with a misfit: the latency of interface 4:1 fits the interface itself (0), the link
// behind it, the node, and less well the node behind the link. A blamed element costs its price, by which it is unlikely. A
// finding that it explains costs its misfit, and so does time: findings that begin together fit better than those that are
// minutes apart. The price is about 2 and most misfits are less than 1, so that two findings with an element in common cost less
// together than alone. Costs are negative logarithms of probabilities, up to a factor. Those of misfits and of time are counts
// of how often an element explained such a finding rightly in such a way; prices, which are how seldom elements fail, were
// chosen by hand.
//
// To the price comes what speaks against an element: the symptoms of the best-fitting kind of cause, by the table of [faults],
// that are absent although they would be reported. Those figures are counts ([Scene.Against]).
//
// # Steps
//
// A new finding joins an open cause or becomes part of a new one, whatever saves most, together with the findings that stand
// alone until now. An open cause costs nothing any more, so that it takes what fits it, unless the news explain each other
// better; its element may change by that, from an interface to its node. The choice is greedy: the cause that saves most comes
// first, and so on until none saves anything. What a cause saves mostly falls while findings are taken away, so a heap gives
// it at a cost of n log n. Its entries are brought up to date when they come up, and made anew for a cause that took
// something. Before it, sets of up to three elements are tried for findings that several of them explain. Each of these
// findings goes to the one that it belongs to in the best set; a part of more than 64 findings is left to the greedy choice. A
// finding that begins long after a cause belongs to it only if it is about something similar, and sixty windows later none
// does.
//
// What a mean of many windows shows is found late. Such a finding is put to what began in the windows in which it can have begun itself, and to a
// change of many paths in that time, which is remembered for it beyond its end.
//
// A finding that nothing goes with stands for itself, without a cause. It joins one later if something comes that goes with
// it. Evidence never changes its cause, and causes are never merged, so that an id means the same from its start to its end.
//
// # What follows from what
//
// Two findings can have a cause in common although they are at different places. Each such step needs a fact of the network:
// which node is behind an interface is learnt from the paths of flows ([Map]), and a path change lists the hops that flows moved
// to. Packets of one flow are seen in one place and in another. Only an exporter that is no node of the network, as a host that
// sends probes, is put to a change of paths because it fell silent in that very moment. So is a flow that is seen at one node
// alone and takes another way in it.
//
// The direction of packets decides what follows from a place where they queue or get lost. Behind it they are fewer as long as
// that lasts, whenever that shows, and those that waited come together and wait once more. Before it, where packets of many
// senders come together, links carry more; an interface that carries more is seldom why. Two findings at one place behind a
// cause are rather one of that place.
//
// # Bounds
//
// A Grouper holds one entry for each finding that stands alone and is open or ended a short time ago, and for each change of many
// paths that began in the last sixty windows: at most maxAlone. It holds maxCauses open causes with at most maxEvidence open
// findings each. What has no place stands for itself. Nothing depends on the order of the findings of a window.
package cause
