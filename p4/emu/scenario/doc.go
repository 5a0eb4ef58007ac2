// Package scenario holds what is shown and measured on the emulated networks of package emu. The parts are the network
// of the demonstration ([PINTDemo]) and the table of troubles of fixed sizes ([Troubles]). The function [Play] runs a
// network by the clock and sends its reports.
//
// The type [Gear] sends the exports of commercial switches, routers and hosts, and emulates no packets. Their layouts
// are those of packages sflow and ipfix, and a script starts and ends faults.
//
// The generator of the caller places a trouble at random; the same numbers give the same place. Only the Play functions
// read a clock and open sockets.
package scenario
