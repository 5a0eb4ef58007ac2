// Package pintplan converts an execution plan of planner/querymix into one that switches and decoders carry out. It
// also reads such plans from files.
//
// Planner and decoders are independent of each other, so that either can be used and tested alone. They meet only in
// this package. The program, the collector, the emulator and the benches all call it, so they share one reading of a
// plan.
package pintplan
