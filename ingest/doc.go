// Package ingest defines what a source hands over: frames, in batches, with the time and place of their arrival. Nothing here or
// below reads what is inside.
package ingest
