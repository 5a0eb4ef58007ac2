// Package ingest says what a source hands over: frames, in batches, with when and where they arrived. Nothing here or
// below reads what is inside.
package ingest
