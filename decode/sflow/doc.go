// Package sflow reads sFlow 5: flow samples, counter samples and discarded packets, each also in its expanded form.
// It reads the records about what happens inside a device. It allocates nothing, and its results alias the bytes that
// it read.
package sflow
