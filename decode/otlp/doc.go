// Package otlp reads metrics of the OpenTelemetry protocol (OTLP 1.x): requests to export them, as protocol buffers. What a metric means follows from
// rules, of which some are built in: which attribute names the interface, and whether a value is a latency, a queue or a counter. Counters and
// histograms come as what was added since the last point or as sums since a start; a decoder remembers the last point of each stream of the
// latter, within bounds, and makes differences.
package otlp
