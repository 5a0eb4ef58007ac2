// Package p4 has what every part of a control plane says of switches: the programs (srint.p4, intmd.p4 and pint.p4), their compiled form
// for BMv2, recordings of what BMv2 does to packets, and the state that a control plane keeps in a switch. Tests hold that programs,
// compiled form and recordings are of one piece. docs/p4.md is about the programs, vectors/README.md about the recordings.
//
// # Entries
//
// A [Table] has entries with a key, an action and its parameters, as a P4Runtime server has them, and a size that it does not grow beyond.
// Writers to switches, the emulated switches and the programs themselves share it. What an [Entry] does is the program's; how it comes to
// the switch is the control plane's.
//
// A [Store] is not safe for concurrent use. Finding an entry in a table of exact fields takes one look-up in a map; in
// any other table it takes a walk along its entries, which are few.
package p4
