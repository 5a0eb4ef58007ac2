// Package inference holds the statements about a network: the statistics of a window, per flow and per hop, and
// findings. The packages below it make them of reports.
//
// Everything below it is pure: time and randomness are arguments, nothing is read or written, no goroutine is started.
// The same reports with the same seed give the same results, bit for bit.
package inference
