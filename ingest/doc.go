// Package ingest defines what a source hands over: frames, in batches, with the time and place of their arrival. Nothing here or
// below looks further than the headers that a socket takes off.
package ingest
