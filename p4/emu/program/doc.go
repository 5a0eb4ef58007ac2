// Package program is the P4 programs of this repository in Go, one switch at a time: a frame, the tables, and what a switch
// measures go in, and the frames that leave come out, bit for bit as BMv2's simple_switch makes them. What is recorded
// from a real switch can be replayed through it, and the emulated network can be held against it.
//
// It follows p4/*.p4 control by control, and simple_switch where the programs lean on it: a parser that fails keeps the
// headers that it has read; a clone of an ingress is the frame that came, parsed again; a clone of an egress is what was
// left there, with the metadata that the program preserves. Tables are written in the language of simple_switch_CLI
// ([Switch.Command]), or as entries.
//
// A Switch keeps what the program keeps in registers, and is not safe for concurrent use.
package program
