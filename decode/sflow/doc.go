// Package sflow reads sFlow 5: flow samples, counter samples and discarded packets, each also in its expanded form, with the records
// that say what happens inside a device. It allocates nothing; what it gives aliases the bytes that it read.
package sflow
