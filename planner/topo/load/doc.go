// Package load reads topology files: GML and GraphML (the Internet Topology Zoo), the .graph and .demands files of REPETITA,
// edge lists, SNDlib, BRITE, labs of containerlab, and the YAML that [Read] describes.
//
// It stands beside the graph, not in it, so that algorithms that index a graph depend neither on files nor on YAML.
// [Topology] opens files; everything else is a pure function of a name and a reader. Input is hostile: sizes, nesting and
// counts are bounded, and every error is an [Error] that names file and line.
//
// Nothing is collapsed or dropped: parallel links and links from a node to itself stay what they are in the file. The
// names of nodes are their labels; where one label stands for several nodes, as in 120 of the 276 networks of the Zoo,
// these are called "label (id)".
package load
