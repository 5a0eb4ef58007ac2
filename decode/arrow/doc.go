// Package arrow writes reports as Apache Arrow streams that any Arrow library reads, and reads them back.
//
// A stream is a schema, two small dictionaries and one record batch with one row a report; docs/reports-arrow.md
// lists the columns. Hops are one column of type list<struct>: one list of offsets serves all values of the hops.
// Parallel columns of lists would each repeat it. pyarrow and DuckDB open the column with one unnest. Values are as
// on the wire, in the device's units. A value that a device did not report, or marked invalid, is null.
//
// The package fills and reads the buffers of the columns itself, without the Arrow library. Neither direction
// allocates memory for a report. Hostile bytes are refused with an [Error], which has the place. Streams are not
// compressed here.
//
// A stream leaves out [decode.Report.FlowHash], which depends on a secret key. Of a report whose header was cut
// ([decode.Report.HeaderCut]) it leaves out the fields that were not accepted.
package arrow
