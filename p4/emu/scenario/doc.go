// Package scenario has what is shown and measured on the emulated networks of package emu: the network of the demonstration ([PINTDemo]), the
// table of troubles, each with a size that stays ([Troubles]), and [Play], which runs a network by the clock and sends its reports.
//
// [Gear] sends the exports of commercial switches, routers and hosts, and emulates no packets: their layouts are those of packages sflow and
// ipfix, and faults come and go by a script.
//
// A trouble is placed at random by the generator that the caller hands over; the same numbers give the same place. Only Play, of either, reads a clock
// and opens sockets.
package scenario
