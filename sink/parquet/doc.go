// Package parquet stores points in Parquet files, one dataset a measurement, and on request the raw stream of reports.
//
//	DIR/hop/2026-11-21T02-000.parquet        hour of the windows (UTC), number of the part
//	DIR/hop/2026-11-21T02-001.parquet
//	DIR/raw/2026-11-21T02-000.parquet        see [rawWriter]
//
// Every point is a row: its time (nanoseconds, UTC), its tags as text, and its fields as typed columns. A column is
// null where the point lacks the field. [sink.AllSeries] is the schema. The file's metadata has its version under
// hopscope.schema_version, and the measurement under hopscope.dataset. Columns are compressed with Zstandard, text
// columns have dictionaries.
//
// # What survives
//
// A Parquet file without its footer cannot be read. A part is therefore built in memory and written at once: to a
// temporary name (.NAME.tmp), forced to the disk, renamed. A file with its final name is whole. A part is written
// every Config.RotateInterval, and whenever memory is used up.
//
// Until then the rows are in memory alone. Behind a queue with a spool, a batch leaves the spool only when all of its
// rows are in renamed files ([Writer.Stored]). A killed process thus loses nothing: the next one reads the batches
// again. Without a spool, kill -9 loses up to Config.RotateInterval of rows; they are then still counted as waiting.
//
// When the process dies between the rename of a part and the commit of the spool, the rows of that part are written
// again. Time and tags are a point's identity, as in every store. A query that must not count a row twice is:
//
//	SELECT DISTINCT ON (time, instance, node, egress_if) * FROM 'hop/*.parquet'
//	ORDER BY time, instance, node, egress_if, revision DESC NULLS LAST
//
// A window is written again after the clock was set back. The order selects the row that was written last.
//
// # Disk full
//
// A part that cannot be written stays in memory and is tried again. When memory is used up, Write refuses further
// batches with an error that may pass, and they wait in the queue.
package parquet
