// Package ipfix reads IPFIX (RFC 7011) and NetFlow 9 (RFC 3954): messages, sets, templates and records. For each
// exporter it keeps templates, data that wait for one, the mode of sequence numbers, and sampling rates. Reading
// records allocates nothing. Results alias the bytes that were read.
package ipfix
