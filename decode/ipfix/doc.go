// Package ipfix reads IPFIX (RFC 7011) and NetFlow 9 (RFC 3954): messages, sets, templates and records, and keeps what has to be remembered
// of each exporter: its templates, data that waits for one, how it counts, and its sampling rates. Reading records allocates nothing; what
// it gives aliases the bytes that it read.
package ipfix
