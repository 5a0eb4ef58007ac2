// Package decode holds the one vocabulary that every telemetry format becomes: [Report], [Hop], [FlowKey] and [Error].
//
// The packages below it read and write one format each; a decoder fills a Report, and decode/demux picks among them.
// Everything here and below is pure: no I/O, no clock, no goroutine, no logger. A decoder never allocates once its
// Batch has grown to the size of the traffic.
//
// The values of a report and a hop are listed once, with names, types, presence and units: [ReportColumns] and
// [HopColumns]. Outputs that only transport values walk these tables.
//
// Values stay raw as on the wire. Units belong to the exporter's profile ([Units]) and are applied once, where values
// enter the sketches.
package decode
