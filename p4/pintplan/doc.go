// Package pintplan converts an execution plan of planner/querymix into one that switches and decoders carry out, and reads such
// plans from files.
//
// The planner and the decoders know nothing of each other, so that either can be used and tested alone. This package is
// the one place where they meet: the program, the collector, the emulator and the benches all call it, and so they
// cannot follow different readings of the same plan.
package pintplan
