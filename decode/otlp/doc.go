// Package otlp reads metrics of the OpenTelemetry protocol (OTLP 1.x): requests to export them, as protocol buffers.
// Rules, of which some are built in, define the meaning of a metric. They name the attribute with the interface, and
// whether a value is a latency, a queue or a counter. Counters and histograms are deltas since the previous point, or
// sums since a start. For sums a decoder keeps the last point of each stream, within bounds, and computes the
// differences.
package otlp
