// Package p4rttest serves P4Runtime for emulated switches: the protocol buffers are those of real ones, behind them are
// tables of package p4. It is written after the specification and not after the client, whose other end it is in tests,
// and it misbehaves on request ([Faults]).
package p4rttest
