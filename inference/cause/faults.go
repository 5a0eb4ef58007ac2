package cause

import "github.com/hopscope/hopscope/inference"

// The figures of this file are counts, made by
//
//	hopscope-bench findings symptoms --seed 501 --seeds 14
//
// in the emulated network of bench/findings: faults of its table at places that are drawn, and nodes of which all links
// and the reports fail. A finding that is open two windows after the first finding of a fault is a symptom. Symptoms
// that fewer than one in twenty places show, or one alone, are left out. A place counts if it shows something or
// reports, so that an interface without packets does not.

// leak is the probability that a place shows a sign without any of the causes: 0 of 4,171,296 before the first fault.
const leak = 1.2e-07

// faults are the kinds of causes.
var faults = []fault{
	{"interface congested", inference.InterfaceElement, 70, []symptom{
		{AtIt, Slow, 63, 70},
		{AtIt, Queues, 56, 70},
		{AtIt, More, 69, 70},
		{links, Slow, 12, 51},
		{Ends, Slow, 28, 70},
		{Ends, Drops, 48, 70},
	}},
	{"link down", inference.LinkElement, 28, []symptom{
		{AtIt, OtherWays, 27, 28},
		{ports, Silent, 19, 45},
		{Ends, Drops, 53, 56},
		{Ends, OtherWays, 3, 56},
	}},
	{"link lossy", inference.LinkElement, 26, []symptom{
		{AtIt, Vanish, 25, 26},
	}},
	{"link longer", inference.LinkElement, 13, []symptom{
		{AtIt, Slow, 13, 13},
	}},
	{"loop", inference.LinkElement, 13, []symptom{
		{ports, Slow, 24, 25},
		{ports, Queues, 24, 25},
		{ports, More, 25, 25},
		{Ends, Slow, 15, 26},
		{Ends, Drops, 20, 26},
		{Ends, OtherWays, 4, 26},
		{Ends, Loops, 15, 26},
	}},
	{"node slow", inference.NodeElement, 14, []symptom{
		{AtIt, Slow, 12, 14},
		{ports, Slow, 55, 55},
	}},
	{"node refuses packets", inference.NodeElement, 28, []symptom{
		{AtIt, Drops, 28, 28},
		{ports, Silent, 7, 104},
	}},
	{"node takes another way", inference.NodeElement, 14, []symptom{
		{AtIt, OtherWays, 12, 14},
		{ports, More, 4, 22},
		{ports, Silent, 8, 22},
		{links, OtherWays, 2, 28},
	}},
	{"node writes wrong digests", inference.NodeElement, 14, nil},
	{"node down", inference.NodeElement, 14, []symptom{
		{AtIt, Silent, 5, 14},
		{ports, Silent, 17, 17},
		{towards, Silent, 25, 25},
		{reports, Unreported, 9, 9},
	}},
	{"exporter silent", inference.ExporterElement, 14, []symptom{
		{AtIt, Unreported, 14, 14},
	}},
	{"exporter loses reports", inference.ExporterElement, 14, []symptom{
		{AtIt, ReportsLost, 14, 14},
	}},
	{"flow vanishes", inference.FlowElement, 14, []symptom{
		{AtIt, Vanish, 14, 14},
	}},
}
