// Package arrow writes reports as Apache Arrow streams that any Arrow library reads, and reads them back.
//
// A stream is a schema, two small dictionaries and one record batch with one row a report; docs/reports-arrow.md lists the
// columns. Hops are one column of type list<struct>: one list of offsets serves all values of the hops, which columns of
// lists beside each other would each repeat, and pyarrow and DuckDB open it with one unnest. Values are as on the wire,
// in the device's units. What a device did not report, or marked invalid, is null.
//
// The package fills and reads the buffers of the columns itself, without the Arrow library: neither direction allocates
// memory for a report, and reading refuses hostile bytes with an [Error] that says where it stopped. Streams are not
// compressed here.
//
// What is not in a stream: [decode.Report.FlowHash], which depends on a secret key, and of a report whose header was cut
// ([decode.Report.HeaderCut]) the fields that were not accepted.
package arrow
