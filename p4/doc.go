// Package p4 holds what every part of a control plane needs of switches. These are the programs (hopscope.p4, its parts
// intmd.p4, into.p4 and rft.p4, and srint.p4 and pint.p4), their compiled form for BMv2, recordings of BMv2, and the
// state of a switch. Tests keep programs, compiled form and recordings consistent. Pages: docs/p4.md for the programs,
// vectors/README.md for the recordings.
//
// # Entries
//
// A [Table] has entries with a key, an action and its parameters, as a P4Runtime server has them, and a maximum size.
// Writers to switches, the emulated switches and the programs themselves share it. The program defines the effect of an
// [Entry]; the control plane brings it to the switch.
//
// A [Store] is not safe for concurrent use. A packet finds the [Row] of its key in the [Rows] of a table without
// allocation. That takes one look-up where all fields are exact, one for each length of a prefix, and halving where ranges
// do not overlap. In any other table it takes a walk along its entries, which are few.
package p4
