// Package demux finds the telemetry in a frame or a datagram by an exporter's [Profile]. It calls the packages of the
// formats, and assembles the parts of one report.
//
// Nothing is guessed here. A dialect is read if the profile has it, and a packet without a mark of the profile is no
// telemetry. Package guess finds a profile that explains packets which another one cannot read.
//
// # Adding a format
//
// A format that rides in packets of the network is one package and one line:
//
//   - The package, beside the others, reads and writes the format. A type with the options of its dialects implements
//     [packet.Format]: the marks of such packets, and a reader for them. FORMAT.md draws the bytes. The tests compare
//     the reader with bytes assembled by hand, and with the writer.
//   - The line goes into builtin, in profiles.go: a profile with the type among its Formats.
//
// Documentation and "hopscope config profiles" follow from the line. A format with a new name, or with new values,
// adds them to the vocabulary in package decode, and their keys to decode/reportjson.
//
// The content of telemetry reports is not found by a table. The report header has its type, and the marks of
// [intmd.Options] show whether INT is in it.
package demux
