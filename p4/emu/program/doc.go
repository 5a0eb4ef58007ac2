// Package program is the P4 programs of this repository in Go, one switch at a time. A frame, the tables, and what a
// switch measures go in. The frames that leave come out, bit for bit as BMv2's simple_switch makes them. Recordings of
// a real switch can be replayed through it. The emulated network executes it for probes, and for routes and INT of other
// packets.
//
// It follows p4/*.p4 control by control, and simple_switch where the programs depend on it. A parser that fails keeps
// the headers that it has read. A clone of an ingress is the frame that came, parsed again. A clone of an egress is the
// frame as left there, with the preserved metadata. Tables are written in the language of simple_switch_CLI
// ([Switch.Command]), or as entries.
//
// A program has two halves with a queue between them. [Switch.Ingress] takes the head of a frame and its length, and chooses
// the port. [Switch.Egress] gets what was measured in the queue, and makes the frame that leaves. [Switch.Clone] turns the
// packet into its clone, which goes through a queue and an egress of its own. A [Packet] holds the frame meanwhile, and
// takes no memory when it is used again. [Switch.Process] replays recorded measurements through both halves.
//
// A Switch holds the registers of the program, and is not safe for concurrent use.
package program
