// Package load reads topology files. The formats are GML and GraphML (the Internet Topology Zoo), REPETITA's .graph and
// .demands, edge lists, SNDlib, BRITE, labs of containerlab, and the YAML of [Read].
//
// The package is beside the graph, not in it, so that algorithms that index a graph depend neither on files nor on YAML.
// Only [Topology] opens files; everything else is a pure function of a name and a reader. Input is hostile: sizes,
// nesting and counts are bounded, and every error is an [Error] that names file and line.
//
// Nothing is collapsed or dropped: parallel links and links from a node to itself stay as in the file. The names of
// nodes are their labels. Where several nodes share a label, as in 120 of the 276 networks of the Zoo, they are called
// "label (id)".
package load
