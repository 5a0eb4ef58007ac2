// Package p4 holds the programs for switches (srint.p4, intmd.p4 and pint.p4), their compiled form for BMv2, and recordings of
// what BMv2 does to packets. Its tests hold that all three are of one piece. docs/p4.md is about the programs, vectors/README.md
// about the recordings.
package p4
