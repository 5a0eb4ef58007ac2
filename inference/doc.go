// Package inference turns reports into statements: statistics per flow and per hop, and findings.
//
// Everything below it is pure: time and randomness are arguments, nothing is read or written, no goroutine is started.
// The same reports with the same seed give the same results, bit for bit.
package inference
